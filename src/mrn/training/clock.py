"""How long the parts of an epoch take."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from mrn.runs.metrics import Row
from mrn.utils.validation import NonNegativeFloat, NonNegativeInt, Validated


@dataclass
class Clock(Validated):
    """Seconds spent in each part of an epoch, and the steps it has played.

    Checkpoints hold it: an epoch that was interrupted has taken the time before, too.
    """

    rollout: NonNegativeFloat = 0.0
    update: NonNegativeFloat = 0.0
    evaluation: NonNegativeFloat = 0.0
    steps: NonNegativeInt = 0

    @contextmanager
    def __call__(self, part: Literal["rollout", "update", "evaluation"]) -> Iterator[None]:
        """Add the time spent in a block to one part of the epoch."""
        started = time.perf_counter()
        yield
        setattr(self, part, getattr(self, part) + time.perf_counter() - started)

    @property
    def rate(self) -> float:
        """Steps per second of playing and learning."""
        return round(self.steps / max(self.rollout + self.update, 1e-9), 1)

    def row(self) -> Row:
        """The columns of the seconds."""
        return {
            "rollout_seconds": round(self.rollout, 3),
            "update_seconds": round(self.update, 3),
            "evaluation_seconds": round(self.evaluation, 3),
        }
