"""Sweeps on a real Ray cluster of two nodes on this machine."""

import os
import pickle
import signal
from pathlib import Path

import pytest
import ray
from ray.cluster_utils import Cluster

from mrn.envs.requirements import UnsupportedEnvError
from mrn.sweeps.backends import _check_resources
from mrn.utils.errors import Interrupted, RunError, UserError
from mrn.utils.files import UnreadableError
from tests.commands import mrn, until
from tests.sweeps.helpers import (
    finish,
    process_in_epoch_2,
    results,
    start_sweep,
)


@pytest.fixture(scope="module")
def cluster():
    # By default Ray's workers are niced, and would starve beside other tests.
    equal_priority = {"worker_niceness": 0}
    nodes = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": equal_priority}
    )
    nodes.add_node(num_cpus=1)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def test_cluster_gives_identical_metrics_after_a_worker_is_killed(cluster, undisturbed, tmp_path):
    sweep = start_sweep(tmp_path, "--backend=ray", f"--address={cluster.address}")
    os.kill(until(lambda: process_in_epoch_2(tmp_path)), signal.SIGKILL)
    output = finish(sweep)
    assert output.count("lost ") == 1
    assert output.count("started ") == 7
    assert results(tmp_path) == results(undisturbed)


def test_run_that_no_machine_can_hold_raises_or_warns(cluster):
    ray.init(cluster.address, log_to_driver=False)
    try:
        _check_resources(ray.nodes(), 1, 0, local=True)
        message = r"requires 2 cores and 0 GPUs .* \(available: 1 and 0; 1 and 0\): lower"
        with pytest.raises(UserError, match=message):
            _check_resources(ray.nodes(), 2, 0, local=True)
        with pytest.warns(UserWarning, match="1 cores and 0.5 GPUs.*or wait until"):
            _check_resources(ray.nodes(), 1, 0.5, local=False)
    finally:
        ray.shutdown()


def test_errors_survive_pickling():
    unsupported = UnsupportedEnvError("Walk-v0", "its reward is 0.2", "fix it")
    sent = [
        unsupported,
        UnreadableError(Path("x"), "stale"),
        Interrupted(15, "saved", already_reported=True),
    ]
    for error in (*sent, RunError("full", resumable=False)):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert (str(copy), vars(copy)) == (str(error), vars(error))


def test_unreachable_cluster_is_an_error():
    refused = mrn("sweep", "quick", "--backend=ray", "--address=127.0.0.1:1")
    assert refused.returncode == 2
    assert "error: no Ray cluster at '127.0.0.1:1'" in refused.stderr
    assert "Traceback" not in refused.stderr
