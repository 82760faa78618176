"""Local backend of a sweep: one process per run."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mrn.runs.layout import log_file
from mrn.sweeps import start_child
from mrn.sweeps.child import LOCKED_EXIT_CODE, RESTARTED, open_log
from mrn.sweeps.jobs import Job
from mrn.sweeps.scheduler import Handle, Outcome
from mrn.utils.device import ANY_GPU
from mrn.utils.signals import STOP_SIGNALS


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
        command = [sys.executable, "-P", start_child.__file__, str(os.getpid()), str(job.folder)]
        with open_log(job.folder) as output:
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
        handle = _LocalHandle(process, log_file(job.folder), start, gpu)
        self.started = [each for each in self.started if each.process.poll() is None] + [handle]
        return handle

    def _gpu(self, job: Job) -> str | None:
        """Return the GPU with the fewest runs; None if there are none or the job names a device."""
        if not self.gpus or job.config.device != ANY_GPU:
            return None
        used = [each.gpu for each in self.started if each.process.poll() is None]
        return min(self.gpus, key=used.count)

    def prepare(self, jobs: Sequence[Job]) -> None:
        """Do nothing; the sweep has checked the folder."""

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
        if code - 128 in STOP_SIGNALS:
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
