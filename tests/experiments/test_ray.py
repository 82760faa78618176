"""A real Ray cluster of two nodes on this machine."""

import os
import signal

import pytest
import ray
from ray.cluster_utils import Cluster

from tests.commands import mrn, until
from tests.experiments.helpers import (
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


def test_no_cluster_at_the_address():
    refused = mrn("sweep", "quick", "--backend=ray", "--address=127.0.0.1:1")
    assert refused.returncode == 2
    assert "error: no Ray cluster at '127.0.0.1:1'" in refused.stderr
    assert "Traceback" not in refused.stderr
