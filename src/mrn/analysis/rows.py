"""Results of one method on one task."""

from dataclasses import dataclass
from statistics import median

import numpy as np

from mrn.analysis.epochs import curves
from mrn.analysis.run import Array, Run
from mrn.analysis.statistics import (
    Sample,
    area_under_curve,
    first_reaching,
    mean_and_std,
    rate_interval,
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
    """Mean over seeds after the last compared epoch, with its interval."""
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
    eval_episodes: tuple[int, ...]
    """Episodes per evaluation of each seed; 0 if unknown."""
    best: bool = False
    """Whether it is better than every other method on the task, beyond the variation of seeds."""
    improvement: Interval | None = None
    """Probability that a run of the reference method has a larger area. None for the reference
    itself, or if the two cannot be compared."""

    def sample(self, measure: str) -> Sample:
        """Return the `success` or `area` of each seed, and how many episodes each averages."""
        episodes = np.array(self.eval_episodes, np.float64)
        if measure == "success":
            return np.array(self.finals), episodes
        return np.array(self.areas), episodes * self.epochs


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
    episodes = np.array([eval_episodes(run) for run in runs])
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
        success=rate_interval(finals, episodes),
        wilson=_wilson(runs[0], float(finals[0])) if len(runs) == 1 else None,
        std=float(mean_and_std(finals)[1]),
        area=rate_interval(areas, episodes * epochs),
        episodes_to=tuple(
            float("nan") if np.isnan(cost).any() else median(cost) for cost in episodes_to
        ),
        epochs_to=tuple(median(cost) for cost in epochs_to),
        reached=tuple(int(np.isfinite(cost).sum()) for cost in epochs_to),
        finals=tuple(finals.tolist()),
        areas=tuple(areas.tolist()),
        eval_episodes=tuple(episodes.tolist()),
    )


def common_epochs(runs: list[Run], stride: int) -> int:
    """Return the number of common epochs that all runs have finished."""
    return min(run.epochs for run in runs) // stride


def eval_episodes(run: Run) -> int:
    """Return the number of episodes per evaluation of a run; 0 if unknown."""
    return run.config.schedule.eval_episodes if run.config else 0


def _wilson(run: Run, success: float) -> Interval | None:
    episodes = eval_episodes(run)
    if not episodes or np.isnan(success):
        return None
    return wilson(round(success * episodes), episodes)


def _last_value(curve: Array) -> float:
    measured = curve[~np.isnan(curve)]
    return float(measured[-1]) if len(measured) else float("nan")
