"""Sweeps on a real Ray cluster of two nodes on this machine."""

import contextlib
import os
import pickle
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import ray
from ray.cluster_utils import Cluster

from mrn.envs.requirements import UnsupportedEnvError
from mrn.sweeps.jobs import plan_jobs
from mrn.sweeps.ray_backend import RayBackend, _check_resources, _compare
from mrn.sweeps.ray_worker import MachineReport, train_logged
from mrn.utils.errors import Interrupted, RunError, UserError
from mrn.utils.files import UnreadableError
from tests.commands import mrn, until
from tests.sweeps.helpers import (
    SUITE,
    finish,
    process_in_epoch_2,
    results,
    start_sweep,
    write_suite,
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return the working directories of the two nodes."""
    return tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("second")


@pytest.fixture(scope="module")
def cluster(folders):
    # By default Ray's workers are niced, and would starve beside other tests.
    equal_priority = {"worker_niceness": 0}
    nodes = Cluster()
    for folder, options in zip(folders, ({"_system_config": equal_priority}, {}), strict=True):
        with contextlib.chdir(folder):
            nodes.add_node(num_cpus=1, **options)
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
    logs = [path.read_text() for path in tmp_path.rglob("seed-*.log")]
    assert len(logs) == 6
    assert all("epoch   3/3 " in log for log in logs)
    assert sum("--- restarted" in log for log in logs) == 1
    assert not list(tmp_path.rglob(".ray-*"))


def test_folder_that_the_nodes_do_not_share_raises_before_any_run(cluster, folders, tmp_path):
    # Every process resolves this path to its own working directory.
    own = Path("/proc/self/cwd/runs")
    suite, options = write_suite(tmp_path, 2), ["--backend=ray", f"--address={cluster.address}"]
    (folders[1] / "runs").mkdir()
    refused = mrn("sweep", suite, "--runs", own, "--threads=1", *options, cwd=folders[0])
    assert refused.returncode == 2
    assert "of the Ray cluster cannot train: it does not see the contents of" in refused.stderr
    assert "put --runs on storage that all machines share" in refused.stderr
    assert list((folders[0] / "runs").rglob("*")) == [folders[0] / "runs/tiny"]
    assert not list((folders[1] / "runs").iterdir())
    # A machine that joins later checks before it trains.
    with pytest.raises(UserError, match="it does not see the contents of /proc/self/cwd/none"):
        train_logged({}, tmp_path / "run", "", Path("/proc/self/cwd/none/.ray-1"))
    assert not (tmp_path / "run.log").exists()


def test_custom_module_that_a_node_cannot_import_raises(cluster, tmp_path, monkeypatch):
    (tmp_path / "near.py").write_text("from mrn.critics import CRITICS\nmine = CRITICS['bvn']\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    jobs = plan_jobs(replace(SUITE, critics=("near:mine",)), tmp_path, 1)
    monkeypatch.setattr(os, "getcwd", lambda: "/elsewhere")
    backend = RayBackend(cluster.address, 1)
    try:
        jobs[0].root.mkdir()
        with pytest.raises(UserError, match="cannot train: there is no module 'near'"):
            backend.prepare(jobs)
    finally:
        backend.close()


def test_machine_with_other_versions_raises_or_warns():
    own = {"mrn": "0.2", "torch": "2.6"}
    _compare("machine a", MachineReport(True, own), own)
    with pytest.raises(UserError, match=r"machine a has mrn 0.1 instead of 0.2: install"):
        _compare("machine a", MachineReport(True, own | {"mrn": "0.1"}), own)
    with pytest.warns(UserWarning, match=r"machine a has torch 2.7 instead of 2.6; results may"):
        _compare("machine a", MachineReport(True, own | {"torch": "2.7"}), own)
    with pytest.warns(UserWarning, match="machine a does not see file locks"):
        _compare("machine a", MachineReport(False, own), own)


@pytest.mark.parametrize(
    ("given", "device", "available", "requested"),
    [
        (None, "cuda", 2, 1),
        (None, "cuda", 0, 0),
        (None, "auto", 2, 0),
        (None, "cpu", 2, 0),
        (0.5, "cuda", 2, 0.5),
        (0.0, "cuda", 2, 0),
    ],
)
def test_run_requests_a_gpu_if_the_cluster_has_one(
    monkeypatch, tmp_path, given, device, available, requested
):
    node = {"Alive": True, "Resources": {"CPU": 4, "GPU": available}}
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "nodes", lambda: [node])
    monkeypatch.setattr(RayBackend, "_check_machines", lambda *_: None)
    (job,) = plan_jobs(
        replace(SUITE, critics=("mrn",), settings={"epochs": 1, "device": device}), tmp_path, 1
    )
    job.root.mkdir()
    backend = RayBackend(None, 1, given)
    backend.prepare([job])
    assert backend._gpus(job) == requested
    backend.close()


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
