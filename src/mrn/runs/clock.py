"""Wall-clock time of the phases of an epoch."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from mrn.runs.metrics import Row
from mrn.utils.validation import NonNegativeFloat, NonNegativeInt, Validated


@dataclass
class Clock(Validated):
    """Seconds spent in each phase of an epoch, and its environment steps.

    Checkpoints store the clock, so the time of an interrupted epoch includes the time before the
    interruption.
    """

    rollout: NonNegativeFloat = 0.0
    update: NonNegativeFloat = 0.0
    evaluation: NonNegativeFloat = 0.0
    steps: NonNegativeInt = 0

    @contextmanager
    def measure(self, phase: Literal["rollout", "update", "evaluation"]) -> Iterator[None]:
        """Add the duration of the block to a phase."""
        started = time.perf_counter()
        yield
        setattr(self, phase, getattr(self, phase) + time.perf_counter() - started)

    @property
    def steps_per_second(self) -> float:
        """Environment steps per second of rollouts and gradient steps."""
        return round(self.steps / max(self.rollout + self.update, 1e-9), 1)

    def row(self) -> Row:
        """Return the timing columns of the metrics."""
        return {
            "rollout_seconds": round(self.rollout, 3),
            "update_seconds": round(self.update, 3),
            "evaluation_seconds": round(self.evaluation, 3),
        }
