"""Ctrl-C and SIGTERM: the first one asks the run to save and end, the second ends it at once."""

import ctypes
import os
import signal
import threading
from contextlib import suppress
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """The run was asked to end; it has saved."""

    def __init__(self, number: int, message: str) -> None:
        """Remember which signal it was: the exit code is 128 more."""
        super().__init__(message)
        self.number = number


class Interruption:
    """While in force, a signal is remembered in `received` instead of raising anywhere."""

    def __init__(self, notice: str) -> None:
        """Remember nothing yet; `notice` says at once what a signal leads to."""
        self.received: int | None = None
        self.notice = notice
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interruption":
        """Take over the signals; Python allows it in the main thread only."""
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._receive) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def end(self, remedy: str) -> Interrupted:
        """The exception to raise once all is saved; `remedy` is the command that goes on."""
        assert self.received is not None
        name = signal.Signals(self.received).name
        return Interrupted(self.received, f"{name}: saved; to go on: {remedy}")

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)  # the next one ends the process
        # Not print: a handler may run in the middle of another print. Who reads a pipe may be gone.
        with suppress(OSError):
            os.write(2, f"\n{self.notice}; once more to quit now\n".encode())


def end_with_parent(number: int) -> None:
    """Ask the system to send this process a signal when its parent ends (on Linux)."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(1, number)  # PR_SET_PDEATHSIG
