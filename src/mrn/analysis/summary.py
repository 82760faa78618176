"""Summary of an experiment: results per task and method, and across tasks.

Methods on a task are compared over the epochs that all of them have finished. Longer training is
then no advantage, and unfinished runs are not penalized. If recipes differ in the length of an
epoch, a common epoch consists of whole epochs of each method.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mrn.analysis.comparability import differences
from mrn.analysis.epochs import Methods, common_lengths, lagging_runs, strides
from mrn.analysis.names import display_names
from mrn.analysis.ranking import best_rows, comparable
from mrn.analysis.rows import MIN_SEEDS, Row, common_epochs, fixed_rng, make_row
from mrn.analysis.runs import Run
from mrn.analysis.statistics import aggregate_improvement, aggregate_iqm
from mrn.utils.intervals import Interval
from mrn.utils.naming import Method
from mrn.utils.plotting import sort_methods

REFERENCE_CRITIC = "mrn"
"""The critic that others are compared with."""


@dataclass(frozen=True)
class Aggregate:
    """A method across tasks."""

    method: str
    success: Interval
    """Interquartile mean of the final success."""
    area: Interval
    """Interquartile mean of the mean success over epochs."""
    improvement: Interval | None
    """Probability of improvement of the reference critic, averaged over tasks."""


@dataclass(frozen=True)
class Summary:
    """Results of an experiment."""

    rows: tuple[Row, ...]
    tasks: tuple[str, ...]
    """Tasks of the aggregates: all methods finished them and can be compared."""
    aggregates: tuple[Aggregate, ...]
    warnings: tuple[str, ...] = ()
    """Differences in training between methods, or between the seeds of one."""


def summarize(tasks: dict[str, Methods], unfinished: Sequence[Run] = ()) -> Summary:
    """Summarize the runs of an experiment.

    Args:
        tasks: Runs with at least one finished epoch, by task and method.
        unfinished: Runs without metrics. A method that still waits for one is not complete.
    """
    rows: list[Row] = []
    for task, methods in tasks.items():
        found = _rows(task, methods, shared_epochs(methods), unfinished)
        best = best_rows(found)
        rows += [replace(row, best=row in best) for row in found]
    names = sort_methods({row.method for row in rows})
    complete = {(row.task, row.method): row for row in rows if row.complete}
    across = tuple(
        task
        for task in tasks
        if all((task, name) in complete for name in names)
        if comparable([complete[task, name] for name in names])
    )
    by_method = {name: [complete[task, name] for task in across] for name in names}
    aggregates = [
        _aggregate(by_method[name], by_method.get(reference_of(name))) for name in names if across
    ]
    shown = display_names(names)
    warnings = [text for place in tasks.items() for text in differences(*place, shown)]
    return Summary(tuple(rows), across, tuple(aggregates), tuple(warnings))


def shared_epochs(methods: Methods) -> int:
    """Return the number of common epochs after which the methods on a task are compared."""
    return min(_available_epochs(methods))


def rows_of_choices(task: str, methods: Methods, unfinished: Sequence[Run] = ()) -> list[Row]:
    """Return rows for any selection of the methods on a task.

    The shared epochs depend on the selection. For each number of epochs at which some method ends,
    there is a row for each method that has reached it.
    """
    rows: list[Row] = []
    for epochs in sorted(_available_epochs(methods)):
        rows += _rows(task, methods, epochs, unfinished)
    return rows


def reference_of(method: str) -> str:
    """Return the method with the reference critic, otherwise configured alike."""
    return str(Method.parse(method)._replace(critic=REFERENCE_CRITIC))


def _without_lagging(methods: Methods) -> Methods:
    """Return the runs that have finished the first common epoch."""
    lagging = lagging_runs(methods)
    rest = {m: [run for run in runs if run not in lagging[m]] for m, runs in methods.items()}
    return {method: runs for method, runs in rest.items() if runs}


def _available_epochs(methods: Methods) -> set[int]:
    """Return the numbers of common epochs at which a method ends."""
    by = strides(methods)
    return {common_epochs(runs, by[method]) for method, runs in _without_lagging(methods).items()}


def _rows(task: str, methods: Methods, epochs: int, unfinished: Sequence[Run]) -> list[Row]:
    """Return rows of the methods that have that many epochs, compared with the reference."""
    by, lengths, rows = strides(methods), common_lengths(methods), {}
    awaited = {run.method for run in unfinished if run.task == task and not run.is_final}
    for method, runs in _without_lagging(methods).items():
        if common_epochs(runs, by[method]) >= epochs:
            complete = method not in awaited and all(run.finished for run in methods[method])
            length = tuple(sorted(lengths[method]))
            rows[method] = make_row(task, method, runs, by[method], epochs, length, complete)
    return [
        replace(row, improvement=_improvement([row], [ours] if ours else None))
        for method, row in rows.items()
        for ours in [rows.get(reference_of(method))]
    ]


def _aggregate(rows: list[Row], reference: list[Row] | None) -> Aggregate:
    finals = [np.array(row.finals) for row in rows]
    areas = [np.array(row.areas) for row in rows]
    success, area = aggregate_iqm(finals, fixed_rng()), aggregate_iqm(areas, fixed_rng())
    return Aggregate(rows[0].method, success, area, _improvement(rows, reference))


def _improvement(rows: list[Row], reference: list[Row] | None) -> Interval | None:
    """Return the probability of improvement of the reference over a method on the same tasks."""
    every = [*rows, *(reference or [])]
    if not reference or rows == reference or min(len(row.seeds) for row in every) < MIN_SEEDS:
        return None
    if not all(comparable(pair) for pair in zip(rows, reference, strict=True)):
        return None
    ours, theirs = ([np.array(row.areas) for row in each] for each in (reference, rows))
    return aggregate_improvement(ours, theirs, fixed_rng())
