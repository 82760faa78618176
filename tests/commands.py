"""`mrn` commands in processes of their own, which do not have to import anything.

Importing torch and EnvPool takes longer than most of these commands. So they run in forks of a
process that has done it, but for a few that are started as a user starts them.
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
"""The command itself."""

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "mrn.cli",
        "mrn.training.loop",
        "envpool",
        "gymnasium_robotics",
        "torch.utils.tensorboard",
        "typeguard",  # which tyro imports when it parses
        "pytest",  # which the modules of tests import, for functions of theirs
    ]
)


class Command:
    """An `mrn` command on its way, with the methods of `subprocess.Popen` that tests need."""

    def __init__(
        self, *arguments: object, cwd: Path | None = None, prepare: Callable | None = None
    ) -> None:
        """Start it in a folder, after calling `prepare` in its process."""
        words = [str(argument) for argument in arguments]
        folder = Path(tempfile.mkdtemp())
        # Files, which unlike pipes can be left unread.
        self.out, self.err = folder / "out", folder / "err"
        self.out.touch(), self.err.touch()
        self.process = FORKS.Process(
            target=_command, args=(words, cwd or Path.cwd(), self.out, self.err, prepare)
        )
        self.process.start()
        self.pid = self.process.pid
        weakref.finalize(self, _forget, self.process, folder)

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
        """All that it printed, once it has ended."""
        self.wait(timeout)
        return self.shown()

    def shown(self) -> tuple[str, str]:
        """What it has printed so far: output and errors."""
        return self.out.read_text(), self.err.read_text()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def until(
    condition: Callable[[], Any], process: Command | subprocess.Popen | None = None, seconds=300.0
) -> Any:
    """The first true value of a condition, which a process that goes on may have to bring about."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert process is None or process.poll() is None, "it has ended"
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
    return value


def _forget(process: multiprocessing.Process, folder: Path) -> None:
    """A test that failed leaves none running."""
    if process.is_alive():
        process.kill()
    shutil.rmtree(folder)


def mrn(*arguments: object, cwd: Path | None = None, prepare: Callable | None = None):
    """Run a command to its end."""
    command = Command(*arguments, cwd=cwd, prepare=prepare)
    output, errors = command.communicate(timeout=120)
    return subprocess.CompletedProcess(arguments, command.returncode, output, errors)


def _command(words: list[str], cwd: Path, out: Path, err: Path, prepare: Callable | None) -> None:
    """In the fork: what the script `mrn` does."""
    for number, file, name in ((1, out, "stdout"), (2, err, "stderr")):
        with open(file, "wb") as stream:
            os.dup2(stream.fileno(), number)
        setattr(sys, name, open(number, "w", closefd=False))  # noqa: SIM115
    multiprocessing.set_start_method(None, force=True)  # as in any program; it was set for the fork
    os.chdir(cwd)
    if prepare:
        prepare()
    sys.argv = ["mrn", *words]
    from mrn.cli import main

    try:
        main()
    finally:
        atexit._run_exitfuncs()  # which a fork of multiprocessing does not come to
