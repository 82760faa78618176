"""Ctrl-C and SIGTERM: the first one asks the run to save and end, the second ends it at once."""

import ctypes
import os
import signal
import threading
from contextlib import suppress
from types import FrameType
from typing import Any

from mrn.team import ALONE, Team

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """The run was asked to end; it has saved."""

    def __init__(self, number: int, message: str, said: bool = False) -> None:
        """Remember which signal it was: the exit code is 128 more.

        Args:
            number: Of the signal.
            message: What happened, and how to go on.
            said: Whether another process of the same run says it.
        """
        super().__init__(message)
        self.number, self.said = number, said


class Interruption:
    """While in force, a signal is remembered in `received` instead of raising anywhere."""

    def __init__(self, notice: str, team: Team = ALONE) -> None:
        """Remember nothing yet.

        Args:
            notice: What a signal leads to, which is said at once.
            team: The processes that are to end together.
        """
        self.received: int | None = None
        self.notice, self.team = notice, team
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

    def agreed(self) -> bool:
        """Whether any process of the team has received a signal; if so, all have from now on."""
        self.received = self.team.most(self.received or 0) or None
        return self.received is not None

    def end(self, remedy: str) -> Interrupted:
        """The exception to raise once all is saved; `remedy` is the command that goes on."""
        assert self.received is not None
        name = signal.Signals(self.received).name
        message = f"{name}: saved; to go on: {remedy}"
        return Interrupted(self.received, message, said=not self.team.leads)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)  # the next one ends the process
        # Not print: a handler may run in the middle of another print. Who reads a pipe may be gone.
        with suppress(OSError):
            if self.team.leads:
                os.write(2, f"\n{self.notice}; once more to quit now\n".encode())


def end_with_parent(number: int) -> None:
    """Ask the system to send this process a signal when its parent ends (on Linux)."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(1, number)  # PR_SET_PDEATHSIG
