"""Timing on a noisy machine: candidates take turns, and what counts is the ratio of medians."""

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple


class Timing(NamedTuple):
    """Seconds of one call."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        """In milliseconds, with the middle half of the repeats."""
        return f"{self.median * 1e3:8.2f} ms ({self.low * 1e3:.2f} - {self.high * 1e3:.2f})"


def take_turns(
    candidates: dict[str, Callable[[], object]], repeats: int, calls: int = 1
) -> dict[str, Timing]:
    """Time each candidate `repeats` times, in turns, after one warm-up turn each."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(repeats + 1):
        for name, call in candidates.items():
            started = time.perf_counter()
            for _ in range(calls):
                call()
            if turn > 0:
                seconds[name].append((time.perf_counter() - started) / calls)
    return {name: _summary(values) for name, values in seconds.items()}


def _summary(values: list[float]) -> Timing:
    if len(values) < 2:
        return Timing(values[0], values[0], values[0])
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Timing(median, low, high)
