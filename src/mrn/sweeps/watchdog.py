"""Watchdog of a sweep: detects runs that make no progress."""

import time

from mrn.sweeps.jobs import Job, current_status

FIRST_EPOCH_LIMIT = 24 * 3600.0
"""Seconds after which a run without any new epoch counts as stalled."""
EPOCH_LIMIT = 3600.0
"""The same after its first epoch, unless its epochs are long."""
EPOCH_FACTOR = 10
"""A run counts as stalled only after this many times its longest epoch."""
CHECK_SECONDS = 10.0
"""Seconds between two checks, because each reads the status of files on shared storage."""


class Watchdog:
    """Measures the time since each run finished its last epoch."""

    def __init__(self) -> None:
        """Start without any run."""
        self._last: dict[Job, tuple[int, float]] = {}
        """Number of epochs of a run, and when it changed."""
        self._longest: dict[Job, float] = {}
        self._checked_at = time.monotonic()

    def is_due(self) -> bool:
        """Return whether it is time to check all runs."""
        now = time.monotonic()
        if now < self._checked_at + CHECK_SECONDS:
            return False
        self._checked_at = now
        return True

    def stalled_seconds(self, job: Job) -> float | None:
        """Return the seconds since the last epoch if they exceed the limit, else None."""
        now, epochs = time.monotonic(), current_status(job).epochs
        before, since = self._last.setdefault(job, (epochs, now))
        if epochs != before:
            self._last[job] = epochs, now
            self._longest[job] = max(self._longest.get(job, 0.0), now - since)
            return None
        longest = self._longest.get(job)
        limit = FIRST_EPOCH_LIMIT if longest is None else max(EPOCH_LIMIT, EPOCH_FACTOR * longest)
        return now - since if now - since > limit else None

    def ended(self, job: Job) -> None:
        """Restart the clock of a run whose process ended."""
        self._last.pop(job, None)
