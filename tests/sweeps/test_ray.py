"""A real Ray cluster of two nodes on this machine."""

import os
import pickle
import signal
from pathlib import Path

import pytest
import ray
from ray.cluster_utils import Cluster

from mrn.envs.requirements import UnsupportedEnvError
from mrn.sweeps.backends import _check_room
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
    # Ray's workers give way to all else on a machine: beside other tests they would starve.
    as_others = {"worker_niceness": 0}
    nodes = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": as_others}
    )
    nodes.add_node(num_cpus=1)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def test_a_cluster_gives_the_same_metrics_even_if_a_worker_is_killed(
    cluster, undisturbed, tmp_path
):
    sweep = start_sweep(tmp_path, "--backend=ray", f"--address={cluster.address}")
    os.kill(until(lambda: process_in_epoch_2(tmp_path)), signal.SIGKILL)
    output = finish(sweep)
    assert output.count("lost ") == 1
    assert output.count("started ") == 7
    assert results(tmp_path) == results(undisturbed)


def test_a_run_that_no_machine_can_hold_is_told(cluster):
    ray.init(cluster.address, log_to_driver=False)
    try:
        _check_room(ray.nodes(), 1, 0, ours=True)
        told = r"asks for 2 cores and 0 GPUs of one machine.* \(they have 1 and 0; 1 and 0\): lower"
        with pytest.raises(UserError, match=told):
            _check_room(ray.nodes(), 2, 0, ours=True)
        with pytest.warns(UserWarning, match="1 cores and 0.5 GPUs.*or the runs wait until"):
            _check_room(ray.nodes(), 1, 0.5, ours=False)
    finally:
        ray.shutdown()


def test_errors_reach_another_process_whole():
    unfit = UnsupportedEnvError("Walk-v0", "it pays 0.2", "mend it")
    sent = [unfit, UnreadableError(Path("x"), "stale"), Interrupted(15, "saved", said=True)]
    for error in (*sent, RunError("full", resumable=False)):
        got = pickle.loads(pickle.dumps(error))
        assert type(got) is type(error)
        assert (str(got), vars(got)) == (str(error), vars(error))


def test_no_cluster_at_the_address():
    refused = mrn("sweep", "quick", "--backend=ray", "--address=127.0.0.1:1")
    assert refused.returncode == 2
    assert "error: no Ray cluster at '127.0.0.1:1'" in refused.stderr
    assert "Traceback" not in refused.stderr
