"""The figures of an experiment: per task and method, and across tasks.

Methods are compared over the epochs that all of them have on a task, so that none gains by having
been trained for longer, or loses by not being finished. Where their epochs have different numbers
of episodes, an epoch is what makes whole epochs of each.
"""

from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from mrn.experiments.comparable import differences
from mrn.experiments.runs import Array, Run, curves, late, strides
from mrn.experiments.stats import (
    LEVEL,
    aggregate_improvement,
    aggregate_iqm,
    aggregate_mean,
    area_under_curve,
    first_reaching,
    mean_and_std,
)
from mrn.intervals import Interval, wilson
from mrn.naming import NO_CRITIC, Method
from mrn.plotting import in_order

THRESHOLDS = (0.5, 0.9)
OURS = "mrn"
"""The critic that others are compared with."""
REFERENCE = str(Method("ddpg", OURS))
"""The method that others are compared with across tasks, where it is there."""
ENOUGH = 2
"""Seeds of a method from which on something can be said of whether it is better than another."""

Methods = dict[str, list[Run]]
"""The runs on a task, by method."""


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
    complete: bool
    """Whether all of its seeds have got as far as they were to."""
    success: Interval
    """Mean over seeds after the last of the epochs, with its bootstrap interval."""
    counted: Interval | None
    """Of one seed: its success with the interval that the number of evaluation episodes leaves,
    which says nothing of other seeds."""
    std: float
    area: Interval
    """Mean over seeds of the mean success over the epochs."""
    episodes_to: tuple[float, ...]
    """Median over seeds of the training episodes to each threshold; infinite if most did not get
    there, NaN if nobody knows how many episodes an epoch had."""
    epochs_to: tuple[float, ...]
    """The same in epochs, which are always known."""
    reached: tuple[int, ...]
    """Seeds that reached each threshold."""
    finals: tuple[float, ...]
    """Success of each seed."""
    areas: tuple[float, ...]
    best: bool = False
    """No other method's mean is higher on this task, and all have enough seeds to say so."""
    improvement: Interval | None = None
    """Probability that a run with the critic `mrn`, all else alike, has a larger area than a run of
    this; None where there is none, or this is it, or either has too few seeds."""


@dataclass(frozen=True)
class Aggregate:
    """A method across tasks."""

    method: str
    success: Interval
    """Interquartile mean of the final success."""
    area: Interval
    """Interquartile mean of the area under the curve."""
    improvement: Interval | None
    """Probability that the reference method is better in that area, averaged over the tasks; None
    for itself, and where either has too few seeds."""


@dataclass(frozen=True)
class Summary:
    """An experiment in figures."""

    rows: tuple[Row, ...]
    tasks: tuple[str, ...]
    """Of the aggregates: those that every method has finished."""
    aggregates: tuple[Aggregate, ...]
    reference: str
    warnings: tuple[str, ...] = ()
    """Where methods, or the seeds of one, were not trained alike."""


def summarise(tasks: dict[str, Methods]) -> Summary:
    """Figures for the runs of an experiment, by task and method."""
    rows: list[Row] = []
    for task, methods in tasks.items():
        by, in_time = _in_time(methods)
        found = _rows(task, in_time, by, _shared(by, in_time))
        rows += [replace(row, best=row in _best(found)) for row in found]
    names = in_order({row.method for row in rows})
    reference = REFERENCE if REFERENCE in names else names[0]
    by_place = {(row.task, row.method): row for row in rows if row.complete}
    across = tuple(task for task in tasks if all((task, name) in by_place for name in names))
    aggregates = tuple(
        _aggregate(
            [by_place[task, name] for task in across],
            [by_place[task, reference] for task in across],
        )
        for name in (names if across else [])
    )
    shown = short_names(names)
    warnings = [told for place in tasks.items() for told in differences(*place, shown)]
    return Summary(tuple(rows), across, aggregates, reference, tuple(warnings))


def shared_epochs(methods: Methods) -> int:
    """Common epochs after which the methods on a task are compared."""
    return _shared(*_in_time(methods))


def _shared(by: dict[str, int], methods: Methods) -> int:
    return min(_own_epochs(runs, by[method]) for method, runs in methods.items())


def rows_of_choices(task: str, methods: Methods) -> list[Row]:
    """Figures for any choice among the methods on a task: what is shared depends on the choice.

    After each number of epochs at which a method ends, a row for each that has as many.
    """
    by, methods = _in_time(methods)
    own = {method: _own_epochs(runs, by[method]) for method, runs in methods.items()}
    rows: list[Row] = []
    for epochs in sorted(set(own.values())):
        there = {method: runs for method, runs in methods.items() if epochs <= own[method]}
        rows += _rows(task, there, by, epochs)
    return rows


def _in_time(methods: Methods) -> tuple[dict[str, int], Methods]:
    """The methods' strides, and their runs but for those that cannot be compared yet."""
    by, behind = strides(methods), late(methods)
    rest = {m: [run for run in runs if run not in behind[m]] for m, runs in methods.items()}
    return by, {method: runs for method, runs in rest.items() if runs}


def _own_epochs(runs: list[Run], stride: int) -> int:
    return min(run.epochs for run in runs) // stride


def _rows(task: str, methods: Methods, by: dict[str, int], epochs: int) -> list[Row]:
    """The methods after so many epochs, each beside the critic `mrn` with all else alike."""
    rows = {m: _row(task, m, runs, by[m], epochs) for m, runs in methods.items()}
    alike = {method: str(Method.parse(method)._replace(critic=OURS)) for method in methods}
    return [
        replace(row, improvement=_improvement([row], [rows.get(alike[method], row)]))
        for method, row in rows.items()
    ]


def _row(task: str, method: str, runs: list[Run], stride: int, epochs: int) -> Row:
    each = slice(stride - 1, None, stride)
    table = curves(runs)[:, each][:, :epochs]  # (seeds, epochs)
    finals = np.array([_last(curve) for curve in table])
    areas = np.array([area_under_curve(curve) for curve in table])
    ends = np.arange(1.0, epochs + 1)
    episodes_to, epochs_to = [], []
    for threshold in THRESHOLDS:
        costs = zip(table, runs, strict=True)
        episodes_to.append(
            [first_reaching(curve, run.episodes[each], threshold) for curve, run in costs]
        )
        epochs_to.append([first_reaching(curve, ends, threshold) for curve in table])
    return Row(
        task,
        method,
        seeds=tuple(run.seed for run in runs),
        epochs=epochs,
        stride=stride,
        own=_own_epochs(runs, stride),
        planned=max(run.planned for run in runs) // stride,
        complete=all(run.finished for run in runs),
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
    if len(rows) < 2 or min(len(row.seeds) for row in rows) < ENOUGH:
        return []
    top = max(row.success.value for row in rows)
    return [row for row in rows if row.success.value > top - LEVEL]


def _aggregate(rows: list[Row], reference: list[Row]) -> Aggregate:
    finals = [np.array(row.finals) for row in rows]
    areas = [np.array(row.areas) for row in rows]
    success, area = aggregate_iqm(finals, _rng()), aggregate_iqm(areas, _rng())
    return Aggregate(rows[0].method, success, area, _improvement(rows, reference))


def _improvement(rows: list[Row], reference: list[Row]) -> Interval | None:
    """Of the reference over a method, on the same tasks."""
    every = [*rows, *reference]
    if rows[0].method == reference[0].method or min(len(row.seeds) for row in every) < ENOUGH:
        return None
    areas, ours = ([np.array(row.areas) for row in each] for each in (rows, reference))
    return aggregate_improvement(ours, areas, _rng())


def short_names(methods: list[str]) -> dict[str, str]:
    """Names to show: the critic alone where all have the same agent, and it has one."""
    parsed = [Method.parse(method) for method in methods]
    short = len({each.agent for each in parsed}) == 1 and parsed[0].critic != NO_CRITIC
    return {m: m.partition("-")[2] if short else m for m in methods}
