"""Ray backend of a sweep: one task per run on a cluster of machines."""

import logging
import os
import shutil
import socket
import uuid
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrn.runs.layout import LOCK, log_file
from mrn.runs.lock import LockedError, RunLock
from mrn.runs.provenance import versions
from mrn.sweeps.jobs import Job
from mrn.sweeps.ray_worker import MachineReport, check_machine, train_logged
from mrn.sweeps.scheduler import Handle, Outcome
from mrn.utils.errors import UserError
from mrn.utils.extras import import_extra

LOCAL = "local"
"""Ray address that starts a new cluster on this machine."""
CHECK_TIMEOUT = 300.0
"""Seconds for all machines to respond before the sweep starts."""


class RayBackend:
    """Trains each run as a task of a Ray cluster whose machines share the runs folder."""

    capacity = 10_000  # Ray keeps the queue

    def __init__(self, address: str | None, cpus: float, gpus: float | None = None) -> None:
        """Connect to a cluster, or start one on this machine.

        Args:
            address: Address of the cluster; by default $RAY_ADDRESS, else a new local cluster.
            cpus: CPU cores per run.
            gpus: GPUs per run that may use one; may be a fraction. By default 1 if a machine of
                the cluster has a GPU, else 0.

        Raises:
            UserError: The cluster does not respond.
        """
        self.ray = ray = import_extra("ray", "ray")
        address = address or os.environ.get("RAY_ADDRESS") or LOCAL
        self.joined = ray.is_initialized()
        if not self.joined:
            try:
                _check_reachable(address)
                ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
            except (ConnectionError, ValueError, RuntimeError, OSError) as error:
                raise UserError(f"no Ray cluster at {address!r}: {error}") from None
        self.is_local = not self.joined and address == LOCAL
        self.cpus, self.gpus = cpus, gpus
        self.marker: Path | None = None
        # One process per run, restarted by the sweep rather than by Ray.
        self.train = ray.remote(num_cpus=cpus, max_calls=1, max_retries=0)(train_logged)

    def prepare(self, jobs: Sequence[Job]) -> None:
        """Check on every machine that it can train the jobs.

        Raises:
            UserError: A machine does not share the folder of the runs, has another version of this
                package or cannot import a custom module, or no machine can hold a run.
        """
        nodes = [node for node in self.ray.nodes() if node["Alive"]]
        if self.gpus is None:
            self.gpus = float(any(node["Resources"].get("GPU", 0) >= 1 for node in nodes))
        _check_resources(nodes, self.cpus, max(map(self._gpus, jobs)), self.is_local)
        self.marker = jobs[0].root / f".ray-{uuid.uuid4().hex}"
        self.marker.mkdir()
        self.lock = RunLock(self.marker)
        configs = [job.config for job in jobs]
        names = {name for each in configs for name in (each.task, each.critic, each.algo)}
        modules = sorted({name.rpartition(":")[0] for name in names if ":" in name})
        self._check_machines(
            [node for node in nodes if node["Resources"].get("CPU", 0) >= self.cpus], modules
        )

    def _check_machines(self, nodes: Sequence[dict[str, Any]], modules: Sequence[str]) -> None:
        """Run `check_machine` on all machines in parallel and compare the reports."""
        assert self.marker is not None
        pin = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        check = self.ray.remote(num_cpus=0, max_retries=0)(check_machine)
        reports = [
            check.options(scheduling_strategy=pin(node["NodeID"], soft=False)).remote(
                self.marker, os.getcwd(), modules, node["NodeID"]
            )
            for node in nodes
        ]
        for node, reference in zip(nodes, reports, strict=True):
            machine = f"machine {node['NodeManagerHostname']} of the Ray cluster"
            try:
                report = self.ray.get(reference, timeout=CHECK_TIMEOUT)
            except self.ray.exceptions.RayTaskError as error:
                raise UserError(f"{machine} cannot train: {error.cause}") from None
            except self.ray.exceptions.RayError as error:
                raise UserError(f"{machine} does not respond: {error}") from None
            if not (self.marker / node["NodeID"]).exists():
                raise UserError(
                    f"{machine} has another folder {self.marker.parent}: put --runs on storage "
                    "that all machines share, or divide the suite with --only"
                )
            _compare(machine, report, versions())

    def _gpus(self, job: Job) -> float:
        return 0.0 if job.config.device in ("auto", "cpu") else self.gpus or 0.0

    def start(self, job: Job) -> Handle:
        """Submit the job to the cluster."""
        task = self.train.options(num_gpus=self._gpus(job))
        result = task.remote(job.config.to_dict(), job.folder, os.getcwd(), self.marker)
        return _RayHandle(self.ray, result, job.folder)

    def close(self) -> None:
        """Disconnect from the cluster, unless the caller had connected before."""
        if self.marker is not None:
            self.lock.close()
            shutil.rmtree(self.marker, ignore_errors=True)
        if not self.joined:
            self.ray.shutdown()


def _compare(machine: str, report: MachineReport, own: dict[str, str]) -> None:
    """Compare a machine with this one.

    Warns:
        UserWarning: Other packages differ, or file locks are not shared.

    Raises:
        UserError: It has another version of this package.
    """
    different = [
        f"{name} {report.versions.get(name, 'unknown')} instead of {version}"
        for name, version in own.items()
        if report.versions.get(name) != version
    ]
    if report.versions.get("mrn") != own["mrn"]:
        raise UserError(f"{machine} has {', '.join(different)}: install the same version on all")
    if different:
        warnings.warn(
            f"{machine} has {', '.join(different)}; results may differ between machines",
            stacklevel=2,
        )
    if not report.sees_lock:
        warnings.warn(
            f"{machine} does not see file locks of this one: do not start the sweep twice, or "
            "mount the storage of --runs with locks",
            stacklevel=2,
        )


def _check_resources(nodes: list[dict[str, Any]], cpus: float, gpus: float, local: bool) -> None:
    """Check that some machine can hold a run, because Ray would wait silently.

    Warns:
        UserWarning: No machine of the cluster can hold a run, but one may join.

    Raises:
        UserError: No machine can, and the cluster is `local`, so none will join.
    """
    machines = [node["Resources"] for node in nodes if node["Alive"]]
    if any(each.get("CPU", 0) >= cpus and each.get("GPU", 0) >= gpus for each in machines):
        return
    available = "; ".join(f"{each.get('CPU', 0):g} and {each.get('GPU', 0):g}" for each in machines)
    message = (
        f"a run requires {cpus:g} cores and {gpus:g} GPUs on one machine, but no machine of the "
        f"cluster has them (available: {available}): lower --threads or --gpus"
    )
    if local:
        raise UserError(message)
    warnings.warn(f"{message}, or wait until a larger machine joins", stacklevel=3)


def _check_reachable(address: str) -> None:
    """Raise if nothing listens at the address, because Ray would retry for many minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=10).close()


class _RayHandle:
    def __init__(self, ray: Any, result: Any, folder: Path) -> None:
        self.ray, self.result, self.folder = ray, result, folder

    def poll(self) -> Outcome | None:
        ended, _ = self.ray.wait([self.result], timeout=0)
        if not ended:
            return None
        errors = self.ray.exceptions
        try:
            self.ray.get(self.result)
        except (errors.TaskCancelledError, KeyboardInterrupt):
            return Outcome("lost", "stopped by a signal")
        except errors.RayTaskError as error:
            if isinstance(error.cause, KeyboardInterrupt):
                return Outcome("lost", "stopped by a signal")
            if isinstance(error.cause, LockedError):
                return Outcome("locked")
            message = f"{type(error.cause).__name__}: {error.cause}"
            return Outcome("failed", f"{message} (see {log_file(self.folder)})")
        except errors.RayError as error:
            return Outcome("lost", type(error).__name__)
        return Outcome("done")

    def has_started(self) -> bool:
        return (self.folder / LOCK).exists()

    def stop(self) -> None:
        self.ray.cancel(self.result)

    def kill(self) -> None:
        self.ray.cancel(self.result, force=True)
