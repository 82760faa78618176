"""The figures of an experiment: per task and method, and across tasks.

Methods are compared over the epochs that all of them have on a task, so that none gains by having
been trained for longer, or loses by not being finished. Where their epochs have different numbers
of episodes, an epoch is what makes whole epochs of each.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from mrn.analysis.comparability import differences
from mrn.analysis.epochs import Methods, curves, late, lengths, strides
from mrn.analysis.runs import Array, Run
from mrn.analysis.statistics import (
    TIE_TOLERANCE,
    aggregate_improvement,
    aggregate_iqm,
    aggregate_mean,
    area_under_curve,
    first_reaching,
    mean_and_std,
)
from mrn.utils.intervals import Interval, wilson
from mrn.utils.naming import NO_CRITIC, Method
from mrn.utils.plotting import sort_methods

THRESHOLDS = (0.5, 0.9)
REFERENCE_CRITIC = "mrn"
"""The critic that others are compared with."""
MIN_SEEDS = 2
"""Seeds of a method from which on something can be said of whether it is better than another."""


@dataclass(frozen=True)
class Row:
    """A method on a task, after some number of epochs that all of its seeds have finished."""

    task: str
    method: str
    seeds: tuple[int, ...]
    epochs: int
    """Epochs that count here."""
    stride: int
    """How many of its own epochs one of these is; all figures are in the common ones."""
    own: int
    """Epochs that all of its seeds have finished."""
    planned: int
    length: tuple[int, ...]
    """Episodes in a common epoch; several lengths, if its seeds differ; none, if nobody knows."""
    complete: bool
    """Whether all of its seeds have got as far as they were to, those that are left out, too."""
    stopped: bool
    """Whether one of its seeds ended early, because of its success."""
    success: Interval
    """Mean over seeds after the last of the epochs, with its bootstrap interval."""
    counted: Interval | None
    """Of one seed: its success with the interval that the number of evaluation episodes leaves,
    which says nothing of other seeds."""
    std: float
    area: Interval
    """Mean over seeds of the mean success over the epochs."""
    episodes_to: tuple[float, ...]
    """Median over seeds of the training episodes until an evaluation first was at each threshold,
    whichever epochs are compared; infinite if most did not get there, NaN if nobody knows how many
    episodes an epoch had."""
    epochs_to: tuple[float, ...]
    """The same in its own epochs, which are always known."""
    reached: tuple[int, ...]
    """Seeds that reached each threshold."""
    finals: tuple[float, ...]
    """Success of each seed."""
    areas: tuple[float, ...]
    best: bool = False
    """No other method's mean is higher on this task, and all have enough seeds to say so."""
    improvement: Interval | None = None
    """Probability that a run with the critic `mrn`, all else alike, has a larger area than a run of
    this; None where there is none, or this is it, or the two cannot be compared."""


@dataclass(frozen=True)
class Aggregate:
    """A method across tasks."""

    method: str
    success: Interval
    """Interquartile mean of the final success."""
    area: Interval
    """Interquartile mean of the area under the curve."""
    improvement: Interval | None
    """That of the rows, averaged over the tasks."""


@dataclass(frozen=True)
class Summary:
    """An experiment in figures."""

    rows: tuple[Row, ...]
    tasks: tuple[str, ...]
    """Of the aggregates: those that every method has finished, and on which all can be compared."""
    aggregates: tuple[Aggregate, ...]
    warnings: tuple[str, ...] = ()
    """Where methods, or the seeds of one, were not trained alike."""


def summarize(tasks: dict[str, Methods], begun: Sequence[Run] = ()) -> Summary:
    """Figures for the runs of an experiment.

    Args:
        tasks: Those that have finished an epoch, by task and method.
        begun: Others: a method with one that will show something yet is not finished.
    """
    rows: list[Row] = []
    for task, methods in tasks.items():
        found = _rows(task, methods, shared_epochs(methods), begun)
        rows += [replace(row, best=row in _best(found)) for row in found]
    names = sort_methods({row.method for row in rows})
    whole = {(row.task, row.method): row for row in rows if row.complete}
    across = tuple(
        task
        for task in tasks
        if all((task, name) in whole for name in names)
        if comparable([whole[task, name] for name in names])
    )
    of = {name: [whole[task, name] for task in across] for name in names}
    aggregates = [_aggregate(of[name], of.get(_with_ours(name))) for name in names if across]
    warnings = [told for place in tasks.items() for told in differences(*place, short_names(names))]
    return Summary(tuple(rows), across, tuple(aggregates), tuple(warnings))


def shared_epochs(methods: Methods) -> int:
    """Common epochs after which the methods on a task are compared."""
    return min(_own_epochs(methods))


def comparable(rows: Iterable[Row]) -> bool:
    """Whether it can be said which method on a task is better.

    Not where epochs of different length never met; nor where a run ended because of its success,
    which is then no measure of it.
    """
    rows = list(rows)
    one_length = len({length for row in rows for length in row.length}) <= 1
    return one_length and not any(row.stopped for row in rows)


def rows_of_choices(task: str, methods: Methods, begun: Sequence[Run] = ()) -> list[Row]:
    """Figures for any choice among the methods on a task: what is shared depends on the choice.

    After each number of epochs at which a method ends, a row for each that has as many.
    """
    rows: list[Row] = []
    for epochs in sorted(_own_epochs(methods)):
        rows += _rows(task, methods, epochs, begun)
    return rows


def _in_time(methods: Methods) -> Methods:
    """The runs but for those that cannot be compared yet."""
    behind = late(methods)
    rest = {m: [run for run in runs if run not in behind[m]] for m, runs in methods.items()}
    return {method: runs for method, runs in rest.items() if runs}


def _own_epochs(methods: Methods) -> set[int]:
    """Common epochs that all runs of a method have, for each method."""
    by = strides(methods)
    return {_whole(runs, by[method]) for method, runs in _in_time(methods).items()}


def _whole(runs: list[Run], stride: int) -> int:
    return min(run.epochs for run in runs) // stride


def _rows(task: str, methods: Methods, epochs: int, begun: Sequence[Run]) -> list[Row]:
    """The methods that have so many epochs, each beside the critic `mrn` with all else alike."""
    by, length, rows = strides(methods), lengths(methods), {}
    awaited = {run.method for run in begun if run.task == task and not run.is_final}
    for method, runs in _in_time(methods).items():
        if _whole(runs, by[method]) >= epochs:
            complete = method not in awaited and all(run.finished for run in methods[method])
            known = (tuple(sorted(length[method])), complete)
            rows[method] = _row(task, method, runs, by[method], epochs, *known)
    return [
        replace(row, improvement=_improvement([row], [ours] if ours else None))
        for method, row in rows.items()
        for ours in [rows.get(_with_ours(method))]
    ]


def _with_ours(method: str) -> str:
    """The method that has the critic `mrn`, and all else alike."""
    return str(Method.parse(method)._replace(critic=REFERENCE_CRITIC))


def _row(
    task: str,
    method: str,
    runs: list[Run],
    stride: int,
    epochs: int,
    length: tuple[int, ...],
    complete: bool,
) -> Row:
    """The figures of a method alone."""
    table = curves(runs)[:, stride - 1 :: stride][:, :epochs]  # (seeds, epochs)
    finals = np.array([_last(curve) for curve in table])
    areas = np.array([area_under_curve(curve) for curve in table])
    episodes_to, epochs_to = (
        [[first_reaching(run.success, cost(run), end) for run in runs] for end in THRESHOLDS]
        for cost in (lambda run: run.episodes, lambda run: run.columns["epoch"])
    )
    return Row(
        task,
        method,
        seeds=tuple(run.seed for run in runs),
        epochs=epochs,
        stride=stride,
        own=_whole(runs, stride),
        planned=max(run.planned for run in runs) // stride,
        length=length,
        complete=complete,
        stopped=any(run.stopped for run in runs),
        success=aggregate_mean([finals], _rng()),
        counted=_counted(runs[0], float(finals[0])) if len(runs) == 1 else None,
        std=float(mean_and_std(finals)[1]),
        area=aggregate_mean([areas], _rng()),
        episodes_to=tuple(
            float("nan") if np.isnan(cost).any() else median(cost) for cost in episodes_to
        ),
        epochs_to=tuple(median(cost) for cost in epochs_to),
        reached=tuple(int(np.isfinite(cost).sum()) for cost in epochs_to),
        finals=tuple(finals.tolist()),
        areas=tuple(areas.tolist()),
    )


def _rng() -> np.random.Generator:
    """A fixed seed for each figure: the same runs give the same digits, whatever is beside them."""
    return np.random.default_rng(0)


def _counted(run: Run, success: float) -> Interval | None:
    episodes = run.config.schedule.eval_episodes if run.config else 0
    if not episodes or np.isnan(success):
        return None
    return wilson(round(success * episodes), episodes)


def _last(curve: Array) -> float:
    """The last value that was measured."""
    measured = curve[~np.isnan(curve)]
    return float(measured[-1]) if len(measured) else float("nan")


def _best(rows: list[Row]) -> list[Row]:
    """The highest, more than one if they are level; none where a method has too few seeds."""
    if len(rows) < 2 or not comparable(rows) or min(len(row.seeds) for row in rows) < MIN_SEEDS:
        return []
    top = max(row.success.value for row in rows)
    return [row for row in rows if row.success.value > top - TIE_TOLERANCE]


def _aggregate(rows: list[Row], ours: list[Row] | None) -> Aggregate:
    finals = [np.array(row.finals) for row in rows]
    areas = [np.array(row.areas) for row in rows]
    success, area = aggregate_iqm(finals, _rng()), aggregate_iqm(areas, _rng())
    return Aggregate(rows[0].method, success, area, _improvement(rows, ours))


def _improvement(rows: list[Row], ours: list[Row] | None) -> Interval | None:
    """Of the critic `mrn` over a method's, on the same tasks."""
    every = [*rows, *(ours or [])]
    if not ours or rows == ours or min(len(row.seeds) for row in every) < MIN_SEEDS:
        return None
    if not all(comparable(pair) for pair in zip(rows, ours, strict=True)):
        return None
    better, areas = ([np.array(row.areas) for row in each] for each in (ours, rows))
    return aggregate_improvement(better, areas, _rng())


def short_names(methods: list[str]) -> dict[str, str]:
    """Names to show: the critic alone where all have the same agent, and it has one."""
    parsed = [Method.parse(method) for method in methods]
    short = len({each.algo for each in parsed}) == 1 and parsed[0].critic != NO_CRITIC
    return {m: (m.partition("-")[2] or m) if short else m for m in methods}
