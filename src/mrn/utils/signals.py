"""Ctrl-C and SIGTERM: the first one asks the run to save and end, the second ends it at once."""

import ctypes
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from mrn.distributed import SINGLE_PROCESS, Ranks
from mrn.utils.errors import Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
AT_ONCE = 1.0
"""Seconds in which a second signal to a process of many is the first one, passed on by torchrun."""


class InterruptHandler:
    """While in force, a signal is remembered in `received` instead of raising anywhere."""

    def __init__(self, notice: str, ranks: Ranks = SINGLE_PROCESS) -> None:
        """Remember nothing yet.

        Args:
            notice: What a signal leads to, which is said at once.
            ranks: The processes that are to end together.
        """
        self.received: int | None = None
        self.notice, self.ranks = notice, ranks
        self._before: dict[int, Any] = {}
        self._first: float | None = None  # when a signal was received

    def __enter__(self) -> "InterruptHandler":
        """Take over the signals; Python allows it in the main thread only."""
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._receive) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def requested(self) -> bool:
        """Whether any rank has received a signal; if so, all have from now on."""
        number = self.ranks.all_reduce_max(self.received or 0)
        if number:  # else one that came during the exchange is for the next time
            self.received = number
        return bool(number)

    def end(self, remedy: str) -> Interrupted:
        """The exception to raise once all is saved; `remedy` is the command that goes on."""
        assert self.received is not None
        name = signal.Signals(self.received).name
        message = f"{name}: saved; to go on: {remedy}"
        return Interrupted(self.received, message, already_reported=not self.ranks.is_main)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._first is not None and now < self._first + AT_ONCE:
            return
        again, self.received, self._first = self._first is not None, number, now
        if again or self.ranks.size == 1:
            for each in _SIGNALS:
                signal.signal(each, signal.SIG_DFL)  # the next one ends the process
        if again:
            os.kill(os.getpid(), number)
        # Not print: a handler may run in the middle of another print. Who reads a pipe may be gone.
        with suppress(OSError):
            if self.ranks.is_main:
                os.write(2, f"\n{self.notice}; once more to quit now\n".encode())


@contextmanager
def kill_children_on_error() -> Iterator[None]:
    """Processes that this one starts in the block are ended if it fails."""
    before = set(multiprocessing.active_children())
    try:
        yield
    except BaseException:
        for process in set(multiprocessing.active_children()) - before:
            process.kill()
        raise


def set_parent_death_signal(number: int) -> None:
    """Ask the system to send this process a signal when its parent ends (on Linux)."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(1, number)  # PR_SET_PDEATHSIG
