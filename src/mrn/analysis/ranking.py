"""Which method is best on a task, if that can be decided."""

from collections.abc import Iterable, Sequence
from math import isfinite

from mrn.analysis.rows import MIN_SEEDS, Row
from mrn.analysis.statistics import TIE_TOLERANCE

MEASURES = ("success", "area", "half", "ninety")
"""Measures to rank by: final success, mean success, and episodes to 50% and 90% success."""


def comparable(rows: Iterable[Row]) -> bool:
    """Return whether success rates of the methods on a task can be compared.

    They cannot if epochs of different lengths never align, or if a run stopped because of its
    success, which then no longer measures it.
    """
    rows = list(rows)
    one_length = len({length for row in rows for length in row.episodes_per_epoch}) <= 1
    return one_length and not any(row.stopped for row in rows)


def rankable(rows: Sequence[Row], measure: str = "success") -> bool:
    """Return whether the best of these methods can be determined.

    Thresholds are comparable only between methods that are evaluated equally often.
    """
    if len(rows) < 2 or min(len(row.seeds) for row in rows) < MIN_SEEDS:
        return False
    if measure in ("success", "area"):
        return comparable(rows)
    return len({row.stride for row in rows}) == 1


def best_rows(rows: Sequence[Row], measure: str = "success") -> list[Row]:
    """Return the best methods on a task, several if tied, none if that cannot be determined."""
    if not rankable(rows, measure):
        return []
    if measure in ("success", "area"):
        scores = {row.method: getattr(row, measure).value for row in rows}
    else:
        index = MEASURES[2:].index(measure)
        known = all(
            isfinite(row.episodes_to[index]) for row in rows if isfinite(row.epochs_to[index])
        )
        scores = {
            row.method: -(row.episodes_to if known else row.epochs_to)[index]
            for row in rows
            if isfinite(row.epochs_to[index])
        }
    top = max(scores.values(), default=0.0)
    return [row for row in rows if scores.get(row.method, -float("inf")) > top - TIE_TOLERANCE]


def pairwise(row: Row, rows: Sequence[Row]) -> dict[str, dict[str, bool]]:
    """Return, by measure and rival, whether a method is the better one or tied.

    Rivals that it cannot be ranked against are left out. A method is the best of a selection if
    all pairs can be ranked and it is never the worse one.
    """
    rivals = [other for other in rows if other.method != row.method]
    return {
        measure: {
            other.method: row in best_rows([row, other], measure)
            for other in rivals
            if rankable([row, other], measure)
        }
        for measure in MEASURES
    }
