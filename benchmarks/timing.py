"""Timing on a noisy machine: candidates alternate, and ratios of medians are compared."""

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple


class Timing(NamedTuple):
    """Seconds per call: median and quartiles."""

    median: float
    low: float
    high: float


def time_in_turns(
    candidates: dict[str, Callable[[], object]], repeats: int, calls: int = 1
) -> dict[str, Timing]:
    """Time each candidate `repeats` times, alternating, after one warm-up round."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(repeats + 1):
        for name, call in candidates.items():
            started = time.perf_counter()
            for _ in range(calls):
                call()
            if turn > 0:
                seconds[name].append((time.perf_counter() - started) / calls)
    return {name: _summarize(values) for name, values in seconds.items()}


def _summarize(values: list[float]) -> Timing:
    if len(values) < 2:
        return Timing(values[0], values[0], values[0])
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Timing(median, low, high)
