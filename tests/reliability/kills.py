"""Training processes that are killed at a chosen moment."""

import atexit
import builtins
import fcntl
import itertools
import json
import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mrn.algorithms import ALGORITHMS
from mrn.envs.vector import GoalVectorEnv
from tests.commands import Command

KILLED = -signal.SIGKILL
UPDATERS = dict.fromkeys(
    next(owner for owner in each.__mro__ if "update" in vars(owner)) for each in ALGORITHMS.values()
)
"""Classes that define the update of an algorithm."""
FUNCTIONS = {
    "step": [(GoalVectorEnv, "step")],
    "update": [(owner, "update") for owner in UPDATERS],
    "open": [(builtins, "open"), (os, "open")],
    "fsync": [(os, "fsync")],
    "rename": [(os, "replace"), (os, "rename")],
    "unlink": [(os, "unlink"), (os, "remove")],
    "mkdir": [(os, "mkdir")],
    "rmtree": [(shutil, "rmtree")],
    "flock": [(fcntl, "flock")],
}
"""Moments to kill at: calls of these functions."""


def _spy(moment: str, before: Callable[[int], None], after: Callable[[int], None]) -> None:
    """Call functions before and after each call of a moment, with the number of the call."""
    numbers = itertools.count(1)

    def wrap(original: Callable) -> Callable:
        def spy(*args: Any, **kwargs: Any) -> Any:
            number = next(numbers)
            before(number)
            try:
                return original(*args, **kwargs)
            finally:  # also of a call that fails, such as mkdir of a folder that exists
                after(number)

        return spy

    for owner, name in FUNCTIONS[moment]:
        setattr(owner, name, wrap(getattr(owner, name)))


class KillAt(NamedTuple):
    """Kill the process before or after the nth call of a moment; for `prepare` of a command.

    The moment `write` kills within a system call: a file exceeds `nth` bytes.
    """

    moment: str
    nth: int
    when: str = "before"

    def __call__(self) -> None:
        if self.moment == "write":
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.nth, self.nth))
            return

        pid = os.getpid()  # not its environment processes

        def kill(number: int) -> None:
            if number == self.nth and os.getpid() == pid:
                os.kill(pid, signal.SIGKILL)

        def ignore(number: int) -> None:
            pass

        _spy(self.moment, *((kill, ignore) if self.when == "before" else (ignore, kill)))


class CountCalls(NamedTuple):
    """Write the number of calls of each moment to a file at the end of the process."""

    file: Path

    def __call__(self) -> None:
        counts = dict.fromkeys(FUNCTIONS, 0)

        def counter(moment: str) -> Callable[[int], None]:
            return lambda number: counts.update({moment: number})

        write = self.file.write_text
        for moment in FUNCTIONS:
            _spy(moment, counter(moment), lambda number: None)
        atexit.register(lambda: write(json.dumps(counts)))


def options(settings: dict[str, Any]) -> Iterator[str]:
    """Return settings as options of `mrn train`."""
    for name, value in settings.items():
        flag = f"--{name.replace('_', '-')}"
        yield flag if value is True else f"{flag}={value}"


def start_training(folder: Path, prepare: Callable | None = None, **settings: Any) -> Command:
    """Start `mrn train --resume` with these settings."""
    words = ("train", "FetchReach", *options(settings), "--run-dir", folder, "--resume")
    return Command(*words, prepare=prepare)


def train(folder: Path, prepare: Callable | None = None, **settings: Any) -> int:
    """Train or resume a run in a process of its own; return the exit code."""
    process = start_training(folder, prepare, **settings)
    _, errors = process.communicate(timeout=120)
    assert "Traceback" not in errors, errors
    return process.returncode
