"""Statistics of few runs, by the advice of Agarwal et al. 2021 (https://arxiv.org/abs/2108.13264).

Per task: mean over seeds with a bootstrap interval, and the standard deviation, as the paper has
it. Across tasks: the interquartile mean with stratified bootstrap intervals, and the probability of
improvement.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mrn.intervals import Interval

Array = NDArray[np.float64]

REPETITIONS = 2000
"""Random bootstrap samples."""
ALL = 50_000
"""Samples up to which all that there are are taken instead: of 6 runs there are 6 ** 6."""
LEVEL = 1e-9
"""Means of the same shares, added in another order, differ by less than this."""


def mean_and_std(values: Array) -> tuple[Array, Array]:
    """Mean and sample standard deviation (n - 1) over the first axis, of what is not NaN.

    One value has no deviation: NaN.
    """
    count = (~np.isnan(values)).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(values, axis=0) / count
        squares = np.nansum((values - mean) ** 2, axis=0)
        return mean, np.sqrt(np.where(count > 1, squares / (count - 1), np.nan))


def area_under_curve(success: Array) -> float:
    """Sample efficiency: the mean height of a learning curve over its epochs, NaN left out."""
    return float(np.nanmean(success))


def first_reaching(success: Array, cost: Array, threshold: float) -> float:
    """What it had cost when a curve first was at the threshold or above; infinite if it never was.

    Args:
        success: A value per epoch.
        cost: For example the episodes played until the end of each epoch.
        threshold: A success rate.
    """
    reached = np.flatnonzero(success >= threshold)
    return float(cost[reached[0]]) if len(reached) else float("inf")


def interquartile_mean(values: Array) -> Array:
    """Mean of the middle half along the last axis: a quarter of the values, rounded down, is
    dropped at each end."""  # noqa: D205, D209
    ordered = np.sort(values, axis=-1)
    count = ordered.shape[-1]
    return ordered[..., count // 4 : count - count // 4].mean(axis=-1)


def _improvement(ours: Sequence[Array], theirs: Sequence[Array]) -> Array:
    """For samples of shape (samples, runs) per task."""
    tasks = []
    for x, y in zip(ours, theirs, strict=True):
        difference = x[:, :, None] - y[:, None, :]  # (samples, runs of ours, of theirs)
        level = np.abs(difference) < LEVEL
        ahead = np.where(np.isnan(difference), np.nan, (difference > 0) & ~level)
        tasks.append((ahead + 0.5 * level).mean(axis=(1, 2)))
    return np.mean(tasks, axis=0)


def bootstrap(
    scores: Sequence[Array],
    statistic: Callable[[list[Array]], Array],
    rng: np.random.Generator,
    repetitions: int = REPETITIONS,
    level: float = 0.95,
) -> Interval:
    """A figure with its stratified percentile bootstrap interval.

    Args:
        scores: The runs of each stratum (a task, or a method on a task); runs are drawn anew, with
            replacement, within each.
        statistic: Of samples of shape (samples, runs) per stratum, a value per sample.
        rng: Source of the draws, where there are too many to take each of them once.
        repetitions: Samples to draw.
        level: Probability that the interval is to cover the true value.

    Returns:
        The figure; its interval is NaN when a stratum has one run alone, for then nothing is known
        of how much its runs vary, and an interval of the others would be too narrow.
    """
    value = float(statistic([runs[None] for runs in scores])[0])
    if min(len(runs) for runs in scores) < 2:
        return Interval(value, float("nan"), float("nan"))
    counts = [len(runs) for runs in scores]
    every = math.prod(count**count for count in counts) <= ALL
    places = _every_draw(counts) if every else _random_draws(counts, rng, repetitions)
    found = statistic([runs[place] for runs, place in zip(scores, places, strict=True)])
    ends = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(found, ends, method="inverted_cdf")
    return Interval(value, float(low), float(high))


def _every_draw(counts: list[int]) -> list[NDArray[np.intp]]:
    """Every way to draw anew from all strata, which are equally likely: (samples, runs) each."""
    sizes = [count for count in counts for _ in range(count)]  # what each place is drawn from
    every = np.stack(np.unravel_index(np.arange(math.prod(sizes)), sizes), axis=-1)
    return np.split(every, np.cumsum(counts)[:-1], axis=-1)


def _random_draws(
    counts: list[int], rng: np.random.Generator, repetitions: int
) -> list[NDArray[np.intp]]:
    return [rng.integers(count, size=(repetitions, count)) for count in counts]


def aggregate_iqm(scores: Sequence[Array], rng: np.random.Generator) -> Interval:
    """Interquartile mean of all runs of all tasks."""
    return bootstrap(scores, lambda d: interquartile_mean(np.concatenate(d, axis=-1)), rng)


def aggregate_mean(scores: Sequence[Array], rng: np.random.Generator) -> Interval:
    """Mean over tasks of the mean over runs."""
    return bootstrap(scores, lambda d: np.mean([t.mean(axis=-1) for t in d], axis=0), rng)


def mean_band(values: Array) -> tuple[Array, Array]:
    """Ends of the interval of the mean over the first axis, of what is not NaN.

    Of one value there is none: NaN. The ends never leave the range of the values.
    """
    ends = np.full((2, values.shape[1]), np.nan)
    for place, column in enumerate(values.T):
        # The same draws for each epoch, so that a band does not flicker from one to the next.
        there = column[~np.isnan(column)]
        if len(there) > 1:
            ends[:, place] = aggregate_mean([there], np.random.default_rng(0))[1:]
    return ends[0], ends[1]


def aggregate_improvement(
    ours: Sequence[Array], theirs: Sequence[Array], rng: np.random.Generator
) -> Interval:
    """Probability of improvement of one method over another."""
    tasks = len(ours)
    both = [*ours, *theirs]
    return bootstrap(both, lambda d: _improvement(d[:tasks], d[tasks:]), rng)
