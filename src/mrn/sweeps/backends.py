"""Where the runs of a sweep are trained: processes of this machine, or a Ray cluster."""

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

from mrn.runs.layout import log_file
from mrn.sweeps.child import train_job
from mrn.sweeps.jobs import Job
from mrn.sweeps.scheduler import Handle, Outcome
from mrn.utils.device import ANY_GPU
from mrn.utils.errors import RunError, UserError
from mrn.utils.extras import import_extra


class LocalBackend:
    """Each run is a process of this machine; what it prints goes to seed-SEED.log beside it."""

    def __init__(self, jobs: int, gpus: Sequence[str] = ()) -> None:
        """So many processes at a time, divided between these GPUs."""
        self.capacity, self.gpus = jobs, gpus
        self.started: list[_LocalHandle] = []

    def start(self, job: Job) -> Handle:
        """Train the job in a process of its own, which gets its settings as JSON."""
        # -P: as for `mrn` itself, the folder one happens to be in is no place to import from.
        command = [sys.executable, "-P", "-m", "mrn.sweeps.child", str(job.folder)]
        log = log_file(job.folder)
        try:
            job.folder.parent.mkdir(parents=True, exist_ok=True)
            output = open(log, "ab")  # noqa: SIM115 - closed below, once the process has it
        except OSError as error:
            raise RunError(f"cannot write {log}: {error.strerror}") from None
        with output:
            if output.tell():  # what an earlier process said is worth most when that one died
                output.write(f"--- started again {time.strftime('%Y-%m-%d %H:%M:%S')}\n".encode())
                output.flush()
            begin = output.tell()
            gpu, environment = self._gpu(job), {"OMP_NUM_THREADS": str(job.config.threads)}
            if gpu is not None:
                environment["CUDA_VISIBLE_DEVICES"] = gpu
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=os.environ | environment,
                start_new_session=True,  # Ctrl-C reaches the sweep alone, which asks each to end
            )
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:  # a process that died is noticed by `poll`
            process.stdin.write(json.dumps(job.config.to_dict()).encode())
        handle = _LocalHandle(process, log, begin, gpu)
        self.started = [each for each in self.started if each.process.poll() is None] + [handle]
        return handle

    def _gpu(self, job: Job) -> str | None:
        """The one with the fewest runs; None where the run names its device, or there are none."""
        if not self.gpus or job.config.device not in ANY_GPU:
            return None
        taken = [each.gpu for each in self.started if each.process.poll() is None]
        return min(self.gpus, key=taken.count)

    def close(self) -> None:
        """Nothing to give back."""


class _LocalHandle:
    def __init__(
        self, process: subprocess.Popen[bytes], log: Path, begin: int, gpu: str | None
    ) -> None:
        self.process, self.log, self.begin, self.gpu = process, log, begin, gpu

    def poll(self) -> Outcome | None:
        code = self.process.poll()
        if code is None:
            return None
        if code == 0:
            return Outcome("done")
        if code < 0:
            return Outcome("lost", f"killed by {_signal_name(-code)}")
        if code in (128 + signal.SIGINT, 128 + signal.SIGTERM):
            return Outcome("lost", "asked to end")
        last = self._last_line() or f"exit code {code}"
        return Outcome("failed", f"{last} (see {self.log})")

    def _last_line(self) -> str:
        """The last that this process said; earlier ones wrote to the same log."""
        try:
            said = self.log.read_bytes()[self.begin :]
        except OSError:  # removed in the meantime
            return ""
        return (said.decode(errors="replace").strip().splitlines() or [""])[-1]

    def stop(self) -> None:
        self.process.terminate()


def _signal_name(number: int) -> str:
    """As `kill -l` has it; most real-time signals have no name in Python."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


LOCAL = "local"
"""What Ray calls a cluster of this machine alone, which it starts."""


class RayBackend:
    """Each run is a task of a Ray cluster, whose machines share the folder of the runs."""

    capacity = 10_000  # Ray keeps the queue

    def __init__(self, address: str | None, cpus: float, gpus: float) -> None:
        """Join the cluster at an address, or at $RAY_ADDRESS, or start one on this machine."""
        self.ray = ray = import_extra("ray", "ray")
        address = address or os.environ.get("RAY_ADDRESS") or LOCAL
        self.joined = ray.is_initialized()
        if not self.joined:
            try:
                _check_answers(address)
                ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
            except (ConnectionError, ValueError, RuntimeError, OSError) as error:
                raise UserError(f"no Ray cluster at {address!r}: {error}") from None
        _check_room(ray.nodes(), cpus, gpus, ours=not self.joined and address == LOCAL)
        # A process of its own for each run; a lost one is started again by the sweep.
        self.train = ray.remote(num_cpus=cpus, num_gpus=gpus, max_calls=1, max_retries=0)(train_job)

    def start(self, job: Job) -> Handle:
        """Hand the job to the cluster."""
        return _RayHandle(
            self.ray, self.train.remote(job.config.to_dict(), job.folder, os.getcwd())
        )

    def close(self) -> None:
        """Leave the cluster, unless the caller had joined it."""
        if not self.joined:
            self.ray.shutdown()


def _check_room(nodes: list[dict[str, Any]], cpus: float, gpus: float, ours: bool) -> None:
    """Say it where no machine can hold a run: Ray would wait, without a word.

    Raises:
        UserError: And none will join, as the cluster is `ours`.
    """
    machines = [node["Resources"] for node in nodes if node["Alive"]]
    if any(each.get("CPU", 0) >= cpus and each.get("GPU", 0) >= gpus for each in machines):
        return
    there = "; ".join(f"{each.get('CPU', 0):g} and {each.get('GPU', 0):g}" for each in machines)
    told = (
        f"a run asks for {cpus:g} cores and {gpus:g} GPUs of one machine, and no machine of the "
        f"cluster has them (they have {there}): lower --threads or --gpus"
    )
    if ours:
        raise UserError(told)
    warnings.warn(f"{told}; or the runs wait until such a machine joins", stacklevel=3)


def _check_answers(address: str) -> None:
    """Fail at once where nobody listens: Ray would try for many minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=10).close()


class _RayHandle:
    def __init__(self, ray: Any, result: Any) -> None:
        self.ray, self.result = ray, result

    def poll(self) -> Outcome | None:
        ended, _ = self.ray.wait([self.result], timeout=0)
        if not ended:
            return None
        errors = self.ray.exceptions
        try:
            self.ray.get(self.result)
        except (errors.TaskCancelledError, KeyboardInterrupt):
            return Outcome("lost", "asked to end")
        except errors.RayTaskError as error:
            if isinstance(error.cause, KeyboardInterrupt):
                return Outcome("lost", "asked to end")
            return Outcome("failed", f"{type(error.cause).__name__}: {error.cause}")
        except errors.RayError as error:
            return Outcome("lost", type(error).__name__)
        return Outcome("done")

    def stop(self) -> None:
        self.ray.cancel(self.result)
