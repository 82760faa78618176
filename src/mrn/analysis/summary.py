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
from mrn.analysis.names import critic_name, display_names
from mrn.analysis.ranking import best_row, comparable
from mrn.analysis.rows import MIN_SEEDS, Row, common_epochs, make_row
from mrn.analysis.run import NEVER_EVALUATED, NO_EPOCH, PRUNED, Run
from mrn.analysis.statistics import aggregate, aggregate_improvement, is_trimmed
from mrn.utils.errors import UserError
from mrn.utils.intervals import Interval
from mrn.utils.naming import Method, safe_name
from mrn.utils.plotting import sort_methods

REFERENCE_CRITIC = "mrn"
"""The critic that others are compared with, unless there is a baseline."""


@dataclass(frozen=True)
class Aggregate:
    """A method across tasks."""

    method: str
    success: Interval
    """Interquartile mean (or mean) of the final success."""
    area: Interval
    """Interquartile mean (or mean) of the mean success over epochs."""
    improvement: Interval | None
    """Probability of improvement of the reference method, averaged over tasks."""


@dataclass(frozen=True)
class Summary:
    """Results of an experiment."""

    rows: tuple[Row, ...]
    tasks: tuple[str, ...]
    """Tasks of the aggregates: all methods finished them and can be compared."""
    aggregates: tuple[Aggregate, ...]
    warnings: tuple[str, ...] = ()
    """Differences in training between methods, or between the seeds of one."""
    trimmed: bool = True
    """Whether aggregates are interquartile means; plain means if there are too few runs."""
    baseline: str = ""
    """The method that others are compared with; by default the reference critic's."""
    damaged: tuple[str, ...] = ()
    """Runs that will have no metrics, and why."""

    @property
    def average(self) -> str:
        """Name of the average across tasks."""
        return "interquartile mean" if self.trimmed else "mean"

    @property
    def better(self) -> str:
        """Title of the probability of improvement."""
        if not self.baseline:
            return f"P({critic_name(REFERENCE_CRITIC)} is better)"
        names = display_names(dict.fromkeys(row.method for row in self.rows))
        return f"P({names.get(self.baseline, self.baseline)} is better)"


def check_baseline(runs: Sequence[Run], baseline: str) -> None:
    """Check that there are runs of the baseline.

    Raises:
        UserError: There are none; the message lists the methods.
    """
    methods = sort_methods({run.method for run in runs if not run.problem})
    if baseline and baseline not in methods:
        raise UserError(f"no runs of baseline {baseline!r}; available: {', '.join(methods)}")


def summarize(
    tasks: dict[str, Methods], unfinished: Sequence[Run] = (), baseline: str = ""
) -> Summary:
    """Summarize the runs of an experiment.

    Args:
        tasks: Runs with at least one finished epoch, by task and method.
        unfinished: Runs without metrics, just started or damaged. Their methods are not complete.
        baseline: Method that all others are compared with. By default, each method is compared
            with that of the reference critic, otherwise configured alike.
    """
    rows: list[Row] = []
    for task, methods in tasks.items():
        found = _rows(task, methods, shared_epochs(methods), unfinished, baseline)
        best = best_row(found)
        rows += [replace(row, best=row is best) for row in found]
    names = sort_methods({row.method for row in rows})
    complete = {(row.task, row.method): row for row in rows if row.complete}
    across = tuple(
        task
        for task in tasks
        if all((task, name) in complete for name in names)
        if comparable([complete[task, name] for name in names])
    )
    by_method = {name: [complete[task, name] for task in across] for name in names}
    trimmed = all(is_trimmed([row.sample("success")[0] for row in by_method[m]]) for m in names)
    aggregates = [
        _aggregate(by_method[name], by_method.get(baseline or reference_of(name)), trimmed)
        for name in names
        if across
    ]
    shown = display_names(names)
    warnings = [text for place in tasks.items() for text in differences(*place, shown)]
    expected = (NO_EPOCH, PRUNED)
    damaged = [f"{run.name}: {run.problem}" for run in unfinished if run.problem not in expected]
    return Summary(
        rows=tuple(rows),
        tasks=across,
        aggregates=tuple(aggregates),
        warnings=tuple(warnings),
        trimmed=trimmed,
        baseline=baseline,
        damaged=tuple(damaged),
    )


def shared_epochs(methods: Methods) -> int:
    """Return the number of common epochs after which the methods on a task are compared."""
    return min(_available_epochs(methods))


def rows_of_choices(
    task: str, methods: Methods, unfinished: Sequence[Run] = (), baseline: str = ""
) -> list[Row]:
    """Return rows for any selection of the methods on a task.

    The shared epochs depend on the selection. For each number of epochs at which some method ends,
    there is a row for each method that has reached it.
    """
    rows: list[Row] = []
    for epochs in sorted(_available_epochs(methods)):
        rows += _rows(task, methods, epochs, unfinished, baseline)
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


def _rows(
    task: str, methods: Methods, epochs: int, unfinished: Sequence[Run], baseline: str
) -> list[Row]:
    """Return rows of the methods that have that many epochs, compared with the reference."""
    by, lengths, rows = strides(methods), common_lengths(methods), {}
    own = [run for run in unfinished if run.task in (task, safe_name(task))]
    awaited = {run.method for run in own if run.problem != NEVER_EVALUATED}
    for method, runs in _without_lagging(methods).items():
        if common_epochs(runs, by[method]) >= epochs:
            complete = method not in awaited and all(run.finished for run in methods[method])
            length = tuple(sorted(lengths[method]))
            rows[method] = make_row(task, method, runs, by[method], epochs, length, complete)
    return [
        replace(row, improvement=_improvement([row], [ours] if ours else None))
        for method, row in rows.items()
        for ours in [rows.get(baseline or reference_of(method))]
    ]


def _aggregate(rows: list[Row], reference: list[Row] | None, trimmed: bool) -> Aggregate:
    # With a fixed seed, results do not depend on other runs in the folder.
    success, area = (
        aggregate([row.sample(name)[0] for row in rows], trimmed, np.random.default_rng(0))
        for name in ("success", "area")
    )
    return Aggregate(rows[0].method, success, area, _improvement(rows, reference))


def _improvement(rows: list[Row], reference: list[Row] | None) -> Interval | None:
    """Return the probability of improvement of the reference over a method on the same tasks."""
    every = [*rows, *(reference or [])]
    if not reference or rows == reference or min(len(row.seeds) for row in every) < MIN_SEEDS:
        return None
    if not all(comparable(pair) for pair in zip(rows, reference, strict=True)):
        return None
    ours, theirs = ([row.sample("area")[0] for row in each] for each in (reference, rows))
    return aggregate_improvement(ours, theirs)
