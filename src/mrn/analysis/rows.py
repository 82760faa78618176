"""Results of one method on one task."""

from dataclasses import dataclass
from statistics import median

import numpy as np

from mrn.analysis.epochs import curves
from mrn.analysis.runs import Array, Run
from mrn.analysis.statistics import (
    aggregate_mean,
    area_under_curve,
    first_reaching,
    mean_and_std,
)
from mrn.utils.intervals import Interval, wilson

THRESHOLDS = (0.5, 0.9)
MIN_SEEDS = 2
"""Seeds per method required to rank methods."""


@dataclass(frozen=True)
class Row:
    """A method on a task, after a number of common epochs that all its seeds have finished."""

    task: str
    method: str
    seeds: tuple[int, ...]
    epochs: int
    """Common epochs that are compared."""
    stride: int
    """Epochs of the method per common epoch."""
    available: int
    """Common epochs that all its seeds have finished."""
    planned: int
    """Common epochs to train."""
    episodes_per_epoch: tuple[int, ...]
    """Episodes per common epoch: several values if seeds differ, none if unknown."""
    complete: bool
    """Whether all its seeds are finished, including those left out."""
    stopped: bool
    """Whether a seed reached `stop_at` before its last epoch."""
    success: Interval
    """Mean over seeds after the last compared epoch, with its bootstrap interval."""
    wilson: Interval | None
    """Success of a single seed with the Wilson interval of its evaluation episodes. It does not
    account for the variation between seeds."""
    std: float
    area: Interval
    """Mean over seeds of the mean success over the compared epochs."""
    episodes_to: tuple[float, ...]
    """Median over seeds of the training episodes to each threshold, over whole runs. Infinite if
    most seeds did not reach it, NaN if the episodes per epoch are unknown."""
    epochs_to: tuple[float, ...]
    """The same in epochs of the method, which are always known."""
    reached: tuple[int, ...]
    """Number of seeds that reached each threshold."""
    finals: tuple[float, ...]
    """Final success of each seed."""
    areas: tuple[float, ...]
    """Mean success over the compared epochs of each seed."""
    best: bool = False
    """Whether no other method on the task has a higher mean, if that can be determined."""
    improvement: Interval | None = None
    """Probability that a run with the reference critic, otherwise configured alike, has a larger
    area. None for the reference critic itself, or if the two cannot be compared."""


def make_row(
    task: str,
    method: str,
    runs: list[Run],
    stride: int,
    epochs: int,
    episodes_per_epoch: tuple[int, ...],
    complete: bool,
) -> Row:
    """Return the results of a method on a task, without comparison to others.

    Args:
        task: Name of the task.
        method: Name of the method.
        runs: Its runs, which all have that many epochs.
        stride: Epochs of the method per common epoch.
        epochs: Common epochs to compare.
        episodes_per_epoch: Episodes per common epoch.
        complete: Whether all its runs are finished.
    """
    table = curves(runs)[:, stride - 1 :: stride][:, :epochs]  # (seeds, epochs)
    finals = np.array([_last_value(curve) for curve in table])
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
        available=common_epochs(runs, stride),
        planned=max(run.planned for run in runs) // stride,
        episodes_per_epoch=episodes_per_epoch,
        complete=complete,
        stopped=any(run.stopped for run in runs),
        success=aggregate_mean([finals], fixed_rng()),
        wilson=_wilson(runs[0], float(finals[0])) if len(runs) == 1 else None,
        std=float(mean_and_std(finals)[1]),
        area=aggregate_mean([areas], fixed_rng()),
        episodes_to=tuple(
            float("nan") if np.isnan(cost).any() else median(cost) for cost in episodes_to
        ),
        epochs_to=tuple(median(cost) for cost in epochs_to),
        reached=tuple(int(np.isfinite(cost).sum()) for cost in epochs_to),
        finals=tuple(finals.tolist()),
        areas=tuple(areas.tolist()),
    )


def common_epochs(runs: list[Run], stride: int) -> int:
    """Return the number of common epochs that all runs have finished."""
    return min(run.epochs for run in runs) // stride


def fixed_rng() -> np.random.Generator:
    """Return a generator with a fixed seed: results do not depend on other runs in the folder."""
    return np.random.default_rng(0)


def _wilson(run: Run, success: float) -> Interval | None:
    episodes = run.config.schedule.eval_episodes if run.config else 0
    if not episodes or np.isnan(success):
        return None
    return wilson(round(success * episodes), episodes)


def _last_value(curve: Array) -> float:
    measured = curve[~np.isnan(curve)]
    return float(measured[-1]) if len(measured) else float("nan")
