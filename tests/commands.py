"""`mrn` commands in forked processes that skip the imports.

Importing torch and EnvPool takes longer than most commands. They run in forks of a server process
that has already imported both. Only a few tests start the installed script.
"""

import atexit
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

MRN = str(Path(sys.executable).with_name("mrn"))
"""Path of the installed script."""

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "mrn.cli",
        "mrn.training.loop",
        "envpool",
        "gymnasium_robotics",
        "torch.utils.tensorboard",
        "typeguard",  # imported by tyro while parsing
        "pytest",  # imported by test modules that define functions for ranks
    ]
)


class Command:
    """A running `mrn` command, with the methods of `subprocess.Popen` that tests need."""

    def __init__(
        self, *arguments: object, cwd: Path | None = None, prepare: Callable | None = None
    ) -> None:
        """Start the command in a folder, after calling `prepare` in its process."""
        arguments = [str(argument) for argument in arguments]
        folder = Path(tempfile.mkdtemp())
        # Files, because a full pipe that nobody reads blocks the command.
        self.out, self.err = folder / "out", folder / "err"
        self.out.touch(), self.err.touch()
        self.process = FORKS.Process(
            target=_run_command, args=(arguments, cwd or Path.cwd(), self.out, self.err, prepare)
        )
        self.process.start()
        self.pid = self.process.pid
        weakref.finalize(self, _clean_up, self.process, folder)

    def poll(self) -> int | None:
        return self.process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self.process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(["mrn"], timeout or 0)
        return self.returncode

    @property
    def returncode(self) -> int | None:
        return self.process.exitcode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the command; return stdout and stderr."""
        self.wait(timeout)
        return self.shown()

    def shown(self) -> tuple[str, str]:
        """Return stdout and stderr so far."""
        return self.out.read_text(), self.err.read_text()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def until(
    condition: Callable[[], Any], process: Command | subprocess.Popen | None = None, seconds=300.0
) -> Any:
    """Poll a condition until it is true and return its value; fail if the process exits."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert process is None or process.poll() is None, "the process exited"
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.02)
    return value


def _clean_up(process: multiprocessing.Process, folder: Path) -> None:
    """Kill a process that a failed test left running."""
    if process.is_alive():
        process.kill()
    shutil.rmtree(folder)


def mrn(*arguments: object, cwd: Path | None = None, prepare: Callable | None = None):
    """Run a command and wait for it."""
    command = Command(*arguments, cwd=cwd, prepare=prepare)
    output, errors = command.communicate(timeout=120)
    return subprocess.CompletedProcess(arguments, command.returncode, output, errors)


def _run_command(
    arguments: list[str], cwd: Path, out: Path, err: Path, prepare: Callable | None
) -> None:
    """Do what the `mrn` script does, in the fork."""
    for number, file, name in ((1, out, "stdout"), (2, err, "stderr")):
        with open(file, "wb") as stream:
            os.dup2(stream.fileno(), number)
        setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
    multiprocessing.set_start_method(None, force=True)  # undo the setting of the fork server
    os.chdir(cwd)
    if prepare:
        prepare()
    sys.argv = ["mrn", *arguments]
    from mrn.cli import main

    try:
        main()
    finally:
        atexit._run_exitfuncs()  # multiprocessing skips them in a fork
