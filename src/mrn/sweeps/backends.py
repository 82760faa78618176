"""Backends of a sweep: local processes, or a Ray cluster."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mrn.runs.layout import LOCK, log_file
from mrn.runs.lock import LockedError
from mrn.sweeps.child import LOCKED_EXIT_CODE, train_job
from mrn.sweeps.jobs import Job
from mrn.sweeps.scheduler import Handle, Outcome
from mrn.utils.device import ANY_GPU
from mrn.utils.errors import RunError, UserError
from mrn.utils.extras import import_extra

RESTARTED = "--- restarted"
"""Line in a log that separates the output of two processes."""


class LocalBackend:
    """Trains each run in a local process, which logs to seed-SEED.log next to its folder."""

    def __init__(self, jobs: int, gpus: Sequence[str] = ()) -> None:
        """Create the backend.

        Args:
            jobs: Number of parallel processes.
            gpus: GPUs to divide between them.
        """
        self.capacity, self.gpus = jobs, gpus
        self.started: list[_LocalHandle] = []

    def start(self, job: Job) -> Handle:
        """Train the job in a new process, which reads its settings as JSON from stdin."""
        # -P: do not import from the working directory, as for `mrn` itself.
        command = [sys.executable, "-P", "-m", "mrn.sweeps.child", str(job.folder)]
        log = log_file(job.folder)
        try:
            job.folder.parent.mkdir(parents=True, exist_ok=True)
            output = open(log, "ab")  # noqa: SIM115 - closed below
        except OSError as error:
            raise RunError(f"cannot write {log}: {error.strerror}") from None
        with output:
            if output.tell():  # keep the log of earlier processes
                output.write(f"{RESTARTED} {time.strftime('%Y-%m-%d %H:%M:%S')}\n".encode())
                output.flush()
            start = output.tell()
            gpu, environment = self._gpu(job), {"OMP_NUM_THREADS": str(job.config.threads)}
            if gpu is not None:
                environment["CUDA_VISIBLE_DEVICES"] = gpu
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=os.environ | environment,
                start_new_session=True,  # Ctrl-C reaches only the sweep, which stops the runs
            )
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:  # `poll` detects a dead process
            process.stdin.write(json.dumps(job.config.to_dict()).encode())
        handle = _LocalHandle(process, log, start, gpu)
        self.started = [each for each in self.started if each.process.poll() is None] + [handle]
        return handle

    def _gpu(self, job: Job) -> str | None:
        """Return the GPU with the fewest runs; None if there are none or the job names a device."""
        if not self.gpus or job.config.device not in ANY_GPU:
            return None
        used = [each.gpu for each in self.started if each.process.poll() is None]
        return min(self.gpus, key=used.count)

    def close(self) -> None:
        """Do nothing; processes are stopped by their handles."""


class _LocalHandle:
    def __init__(
        self, process: subprocess.Popen[bytes], log: Path, start: int, gpu: str | None
    ) -> None:
        self.process, self.log, self.start, self.gpu = process, log, start, gpu

    def poll(self) -> Outcome | None:
        code = self.process.poll()
        if code is None:
            return None
        if code == 0:
            return Outcome("done")
        if code < 0:
            return Outcome("lost", f"killed by {_signal_name(-code)}")
        if code == LOCKED_EXIT_CODE:
            return Outcome("locked")
        if code in (128 + signal.SIGINT, 128 + signal.SIGTERM):
            return Outcome("lost", "stopped by a signal")
        last = self._last_line() or f"exit code {code}"
        return Outcome("failed", f"{last} (see {self.log})")

    def _last_line(self) -> str:
        """Return the last line of this process in the log, which it shares with other ones."""
        try:
            output = self.log.read_bytes()[self.start :]
        except OSError:  # deleted in the meantime
            return ""
        own = output.decode(errors="replace").partition(RESTARTED)[0]
        return (own.strip().splitlines() or [""])[-1]

    def has_started(self) -> bool:
        return True

    def stop(self) -> None:
        self.process.terminate()
        self.process.send_signal(signal.SIGCONT)  # a suspended process handles no other signal

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # with its environments
            with suppress(subprocess.TimeoutExpired):  # it may hang in the kernel
                self.process.wait(timeout=5)


def _signal_name(number: int) -> str:
    """Return the name of a signal; most real-time signals have none in Python."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


LOCAL = "local"
"""Ray address that starts a new cluster on this machine."""


class RayBackend:
    """Trains each run as a task of a Ray cluster whose machines share the runs folder."""

    capacity = 10_000  # Ray keeps the queue

    def __init__(self, address: str | None, cpus: float, gpus: float) -> None:
        """Connect to a cluster, or start one on this machine.

        Args:
            address: Address of the cluster; by default $RAY_ADDRESS, else a new local cluster.
            cpus: CPU cores per run.
            gpus: GPUs per run; may be a fraction.

        Raises:
            UserError: The cluster does not respond, or a new one cannot hold a run.
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
        _check_resources(ray.nodes(), cpus, gpus, local=not self.joined and address == LOCAL)
        # One process per run, restarted by the sweep rather than by Ray.
        self.train = ray.remote(num_cpus=cpus, num_gpus=gpus, max_calls=1, max_retries=0)(train_job)

    def start(self, job: Job) -> Handle:
        """Submit the job to the cluster."""
        result = self.train.remote(job.config.to_dict(), job.folder, os.getcwd())
        return _RayHandle(self.ray, result, job.folder / LOCK)

    def close(self) -> None:
        """Disconnect from the cluster, unless the caller had connected before."""
        if not self.joined:
            self.ray.shutdown()


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
    def __init__(self, ray: Any, result: Any, lock: Path) -> None:
        self.ray, self.result, self.lock = ray, result, lock

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
            return Outcome("failed", f"{type(error.cause).__name__}: {error.cause}")
        except errors.RayError as error:
            return Outcome("lost", type(error).__name__)
        return Outcome("done")

    def has_started(self) -> bool:
        return self.lock.exists()

    def stop(self) -> None:
        self.ray.cancel(self.result)

    def kill(self) -> None:
        self.ray.cancel(self.result, force=True)
