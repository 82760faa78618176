"""Signals that stop a run: the first one saves, a second Ctrl-C or SIGTERM kills it."""

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

_REPEATED = tuple(getattr(signal, name) for name in ("SIGHUP", "SIGUSR1") if hasattr(signal, name))
"""Signals that one event may send several times; only the first one counts. For example, shell and
kernel both send SIGHUP."""
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, *_REPEATED)
"""Ctrl-C, `kill`, a closed terminal, and the warning of job schedulers before preemption."""
DEBOUNCE_SECONDS = 1.0
"""Ignore further signals for this long: torchrun forwards Ctrl-C to ranks that already got it."""


class InterruptHandler:
    """Context manager that stores a signal in `received` instead of raising an exception."""

    def __init__(self, notice: str, ranks: Ranks = SINGLE_PROCESS) -> None:
        """Initialize the handler without installing it.

        Args:
            notice: What happens after a signal; printed as soon as one arrives.
            ranks: Ranks that stop together.
        """
        self.received: int | None = None
        self.notice, self.ranks = notice, ranks
        self._previous_handlers: dict[int, Any] = {}
        self._received_at: float | None = None
        self._terminals: list[int] = []

    def __enter__(self) -> "InterruptHandler":
        """Install the handler; Python allows this only in the main thread."""
        if threading.current_thread() is threading.main_thread():
            self._terminals = [stream for stream in (1, 2) if os.isatty(stream)]
            self._previous_handlers = {
                number: signal.signal(number, self._receive)
                for number in STOP_SIGNALS
                # `nohup` ignores it to keep the run alive.
                if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
            }
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the previous handlers."""
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)

    def requested(self) -> bool:
        """Return whether any rank has received a signal, and share it with all ranks."""
        number = self.ranks.all_reduce_max(self.received or 0)
        if number:  # keep a signal that arrived during the all-reduce for the next call
            self.received = number
        return bool(number)

    def end(self, remedy: str) -> Interrupted:
        """Return the exception to raise after saving; `remedy` is the command to resume."""
        assert self.received is not None
        name = signal.Signals(self.received).name
        message = f"{name}: saved; resume with: {remedy}"
        return Interrupted(self.received, message, already_reported=not self.ranks.is_main)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self._detach()
        now = time.monotonic()
        if self._received_at is not None and now < self._received_at + DEBOUNCE_SECONDS:
            return
        again = self._received_at is not None
        if again and number in _REPEATED:
            return
        self.received, self._received_at = number, now
        if again or self.ranks.size == 1:
            for each in set(STOP_SIGNALS) - set(_REPEATED):
                signal.signal(each, signal.SIG_DFL)  # the next signal kills the process
        if again:
            os.kill(os.getpid(), number)
        # os.write, because a handler may interrupt another print.
        with suppress(OSError):  # the reader of a pipe may have exited
            if self.ranks.is_main:
                os.write(2, f"\n{self.notice}; interrupt again to quit immediately\n".encode())

    def _detach(self) -> None:
        """Discard further output to a terminal that was closed; writing to it would fail."""
        null = os.open(os.devnull, os.O_WRONLY)
        for stream in self._terminals:
            os.dup2(null, stream)
        os.close(null)


@contextmanager
def kill_children_on_error() -> Iterator[None]:
    """Kill child processes started in this block if the block raises."""
    before = set(multiprocessing.active_children())
    try:
        yield
    except BaseException:
        for process in set(multiprocessing.active_children()) - before:
            process.kill()
        raise


@contextmanager
def time_limit(seconds: float, message: str) -> Iterator[None]:
    """Raise `multiprocessing.TimeoutError` in this block after some time.

    It relies on SIGALRM, which Python handles only in the main thread; other threads wait forever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise multiprocessing.TimeoutError(message)

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def set_parent_death_signal(number: int) -> None:
    """Send this process a signal when its parent exits (Linux only)."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(1, number)  # PR_SET_PDEATHSIG
