"""Which method is best on a task, if that can be decided."""

from collections.abc import Iterable, Sequence

from mrn.analysis.rows import MIN_SEEDS, Row
from mrn.analysis.statistics import difference_interval

MEASURES = ("success", "area")
"""Measures to rank by: final success and mean success."""
BEST = "better than each other method, with a 95% interval of the difference above zero"
"""What marks a method as best."""


def comparable(rows: Iterable[Row]) -> bool:
    """Return whether success rates of the methods on a task can be compared.

    They cannot if epochs of different lengths never align, or if a run stopped because of its
    success, which then no longer measures it.
    """
    rows = list(rows)
    one_length = len({length for row in rows for length in row.episodes_per_epoch}) <= 1
    return one_length and not any(row.stopped for row in rows)


def rankable(rows: Sequence[Row]) -> bool:
    """Return whether the best of these methods can be determined."""
    if len(rows) < 2 or min(len(row.seeds) for row in rows) < MIN_SEEDS:
        return False
    return comparable(rows)


def is_better(row: Row, other: Row, measure: str) -> bool:
    """Return whether the interval of the difference between two methods is above zero."""
    return difference_interval(row.sample(measure), other.sample(measure)).low > 0


def best_row(rows: Sequence[Row], measure: str = "success") -> Row | None:
    """Return the method that is better than every other one, if there is one."""
    if not rankable(rows):
        return None
    for row in rows:
        if all(is_better(row, other, measure) for other in rows if other is not row):
            return row
    return None


def pairwise(row: Row, rows: Sequence[Row]) -> dict[str, dict[str, bool]]:
    """Return, by measure and rival, whether a method is the better one.

    Rivals that it cannot be ranked against are left out. A method is the best of a selection if
    all pairs can be ranked and it is the better one in all of its own.
    """
    rivals = [other for other in rows if other.method != row.method and rankable([row, other])]
    return {
        measure: {other.method: is_better(row, other, measure) for other in rivals}
        for measure in MEASURES
    }
