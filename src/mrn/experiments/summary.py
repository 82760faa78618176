"""The figures of an experiment: per task and method, and across tasks."""

from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from mrn import tables
from mrn.experiments.runs import Array, Run, curves
from mrn.experiments.stats import (
    Interval,
    aggregate_improvement,
    aggregate_iqm,
    aggregate_mean,
    area_under_curve,
    first_reaching,
    mean_and_std,
)
from mrn.naming import Method
from mrn.plotting import in_order

THRESHOLDS = (0.5, 0.9)
REFERENCE = str(Method("ddpg", "mrn"))
"""The method that others are compared with, where it is there."""


@dataclass(frozen=True)
class Row:
    """A method on a task, after the last epoch that all of its seeds have finished."""

    task: str
    method: str
    seeds: tuple[int, ...]
    epochs: int
    planned: int
    success: Interval
    std: float
    area: Interval
    episodes_to: tuple[float, ...]
    """Median over seeds of the training episodes to each threshold; infinite if most never did."""
    reached: tuple[int, ...]
    """Seeds that reached each threshold."""
    finals: tuple[float, ...]
    """Success of each seed."""
    areas: tuple[float, ...]
    best: bool = False
    """No other method's mean is higher on this task, after as many epochs."""


@dataclass(frozen=True)
class Aggregate:
    """A method across tasks."""

    method: str
    success: Interval
    """Interquartile mean of the final success."""
    area: Interval
    """Interquartile mean of the area under the curve."""
    improvement: Interval | None
    """Probability that the reference method is better in that area; None for itself."""


@dataclass(frozen=True)
class Summary:
    """An experiment in figures."""

    rows: tuple[Row, ...]
    tasks: tuple[str, ...]
    """Of the aggregates: those that every method has finished."""
    aggregates: tuple[Aggregate, ...]
    reference: str


def summarise(tasks: dict[str, dict[str, list[Run]]]) -> Summary:
    """Figures for the runs of an experiment, by task and method."""
    # A fixed seed: the same runs give the same digits.
    rng = np.random.default_rng(0)
    rows: list[Row] = []
    for task, methods in tasks.items():
        found = [_row(task, method, runs, rng) for method, runs in methods.items()]
        farthest = max(row.planned for row in found)
        complete = [row for row in found if row.epochs == farthest]
        top = max((row.success.value for row in complete), default=np.inf)
        rows += [replace(r, best=r in complete and r.success.value == top) for r in found]
    names = in_order({row.method for row in rows})
    reference = REFERENCE if REFERENCE in names else names[0]
    by_place = {(row.task, row.method): row for row in rows if row.epochs == row.planned}
    shared = tuple(task for task in tasks if all((task, name) in by_place for name in names))
    aggregates = []
    for name in names if shared else []:
        finals = [np.array(by_place[task, name].finals) for task in shared]
        areas = [np.array(by_place[task, name].areas) for task in shared]
        ours = [np.array(by_place[task, reference].areas) for task in shared]
        better = None if name == reference else aggregate_improvement(ours, areas, rng)
        aggregates.append(
            Aggregate(name, aggregate_iqm(finals, rng), aggregate_iqm(areas, rng), better)
        )
    return Summary(tuple(rows), shared, tuple(aggregates), reference)


def _row(task: str, method: str, runs: list[Run], rng: np.random.Generator) -> Row:
    epochs = min(run.epochs for run in runs)
    table = curves(runs)[:, :epochs]  # (seeds, epochs)
    finals = np.array([_last(curve) for curve in table])
    areas = np.array([area_under_curve(curve) for curve in table])
    costs = [
        [first_reaching(run.success, run.episodes, threshold) for run in runs]
        for threshold in THRESHOLDS
    ]
    return Row(
        task,
        method,
        seeds=tuple(run.seed for run in runs),
        epochs=epochs,
        planned=max(run.planned for run in runs),
        success=aggregate_mean([finals], rng),
        std=float(mean_and_std(finals)[1]),
        area=aggregate_mean([areas], rng),
        episodes_to=tuple(median(cost) for cost in costs),
        reached=tuple(int(np.isfinite(cost).sum()) for cost in costs),
        finals=tuple(finals.tolist()),
        areas=tuple(areas.tolist()),
    )


def _last(curve: Array) -> float:
    """The last value that was measured."""
    measured = curve[~np.isnan(curve)]
    return float(measured[-1]) if len(measured) else float("nan")


def short_names(methods: list[str]) -> dict[str, str]:
    """Names to show: the critic alone where all have the same agent."""
    agents = {Method.parse(method).agent for method in methods}
    return {m: m.partition("-")[2] if len(agents) == 1 else m for m in methods}


def markdown(summary: Summary) -> str:
    """The figures as Markdown tables."""
    names = short_names([row.method for row in summary.rows])
    heads: tuple[str, ...] = ("task", "method", "seeds", "epochs", "success", "std")
    heads += ("mean over epochs", "episodes to 50 %", "to 90 %")
    rows = []
    for row in summary.rows:
        mark = "**" if row.best else ""
        epochs = f"{row.epochs}" if row.epochs == row.planned else f"{row.epochs} of {row.planned}"
        costs = [
            show_cost(cost, reached, len(row.seeds))
            for cost, reached in zip(row.episodes_to, row.reached, strict=True)
        ]
        figures = (f"{mark}{show(row.success)}{mark}", percent(row.std), show(row.area))
        seeds = str(len(row.seeds))
        rows.append((row.task, names[row.method], seeds, epochs, *figures, *costs))
    text = tables.markdown((heads, rows)) + "\n"
    if len(summary.tasks) < 2:
        return text
    heads = ("method", "success", "mean over epochs", f"P({names[summary.reference]} is better)")
    across = []
    for each in summary.aggregates:
        better = "" if each.improvement is None else show(each.improvement)
        across.append((names[each.method], show(each.success), show(each.area), better))
    title = f"Across {len(summary.tasks)} tasks, interquartile mean:"
    return f"{text}\n{title}\n\n{tables.markdown((heads, across))}\n"


def show(interval: Interval) -> str:
    """A share with its interval, in per cent."""
    value = percent(interval.value)
    if np.isnan(interval.low):
        return value
    return f"{value} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def percent(value: float) -> str:
    """A share in per cent; a dash for what is not known."""
    return "-" if np.isnan(value) else f"{100 * value:.1f} %"


def show_cost(episodes: float, reached: int, seeds: int) -> str:
    """Episodes to a threshold, and how many seeds got there if not all."""
    text = "never" if np.isinf(episodes) else "-" if np.isnan(episodes) else f"{episodes:,.0f}"
    return text if reached in (seeds, 0) else f"{text} ({reached} of {seeds})"
