"""Statistics for small numbers of runs.

Per task: mean over seeds with Student's t interval, and the standard deviation reported by the
paper. Across tasks: interquartile mean and probability of improvement, following Agarwal et al.
2021 (https://arxiv.org/abs/2108.13264), with intervals that also hold for few seeds.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mrn.utils.intervals import (
    Interval,
    improvement_interval,
    normal_quantile,
    t_quantile,
    wilson,
)

Array = NDArray[np.float64]

REPETITIONS = 2000
"""Number of bootstrap samples."""
MIN_TRIMMED = 4
"""From this number of values on, an interquartile mean differs from a mean."""
TIE_TOLERANCE = 1e-9
"""Means of equal success rates may differ by less than this, because of rounding."""


def mean_and_std(values: Array) -> tuple[Array, Array]:
    """Return mean and sample standard deviation (n - 1) over the first axis, ignoring NaN.

    The standard deviation of a single value is NaN.
    """
    count = (~np.isnan(values)).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(values, axis=0) / count
        squares = np.nansum((values - mean) ** 2, axis=0)
        return mean, np.sqrt(np.where(count > 1, squares / (count - 1), np.nan))


def area_under_curve(success: Array) -> float:
    """Return the mean of a learning curve over its epochs, ignoring NaN."""
    return float(np.nanmean(success))


def first_reaching(success: Array, cost: Array, threshold: float) -> float:
    """Return the cost at which a curve first reaches a threshold; infinite if it never does.

    Args:
        success: Success rate per epoch.
        cost: Cost until the end of each epoch, for example in episodes.
        threshold: A success rate.
    """
    reached = np.flatnonzero(success >= threshold)
    return float(cost[reached[0]]) if len(reached) else float("inf")


def mean_interval(values: Array) -> Interval:
    """Return the mean with Student's t interval.

    The interval is NaN for fewer than two values, and for equal values: their spread is unknown.
    """
    mean, std = (float(each) for each in mean_and_std(values))
    if len(values) < 2 or not std > TIE_TOLERANCE:
        return Interval(mean, math.nan, math.nan)
    half = t_quantile(len(values) - 1) * std / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


def rate_interval(rates: Array, episodes: Array) -> Interval:
    """Return the mean of success rates with Student's t interval, within 0 and 1.

    It is never narrower than the Wilson interval of all episodes: if all seeds succeed in all
    episodes, the t interval alone would be a point.

    Args:
        rates: Success rate of each seed.
        episodes: Evaluation episodes of each seed; 0 if unknown.

    Returns:
        The mean and its interval, which is NaN for a single seed.
    """
    mean, low, high = mean_interval(rates)
    if len(rates) < 2 or math.isnan(mean):
        return Interval(mean, math.nan, math.nan)
    if episodes.all():
        _, *ends = wilson(round(float(rates @ episodes)), int(episodes.sum()))
        low, high = np.nanmin([low, ends[0]]), np.nanmax([high, ends[1]])
    return Interval(mean, *np.clip([low, high], 0.0, 1.0).tolist())


def rate_band(rates: Array, episodes: Array) -> tuple[Array, Array]:
    """Return the ends of `rate_interval` for each epoch of learning curves.

    Args:
        rates: Shape (seeds, epochs), NaN where a seed has no value.
        episodes: Evaluation episodes of each seed in an epoch; 0 if unknown.
    """
    present = ~np.isnan(rates)
    found = [rate_interval(r[p], episodes[p]) for r, p in zip(rates.T, present.T, strict=True)]
    return np.array([each.low for each in found]), np.array([each.high for each in found])


def mean_band(values: Array) -> tuple[Array, Array]:
    """Return the ends of `mean_interval` for each epoch; shape (seeds, epochs), NaN if missing."""
    found = [mean_interval(column[~np.isnan(column)]) for column in values.T]
    return np.array([each.low for each in found]), np.array([each.high for each in found])


Sample = tuple[Array, Array]
"""Success rates of some seeds, and the evaluation episodes of each; 0 if unknown."""


def difference_interval(ours: Sample, theirs: Sample) -> Interval:
    """Return the difference of two means of success rates with Welch's t interval.

    The interval is NaN if a method has a single seed or no spread and unknown episodes.
    """
    value = float(ours[0].mean() - theirs[0].mean())
    counts = [len(rates) for rates, _ in (ours, theirs)]
    variances = [_variance_of_mean(*sample) for sample in (ours, theirs)]
    if min(counts) < 2 or not min(variances) > 0:
        return Interval(value, math.nan, math.nan)
    half = t_quantile(_freedom(variances, counts)) * math.sqrt(sum(variances))
    return Interval(value, value - half, value + half)


def _variance_of_mean(rates: Array, episodes: Array) -> float:
    """Return the variance of a mean: that between seeds, at least that of all episodes."""
    between = float(mean_and_std(rates)[1]) ** 2 / len(rates)
    if not episodes.all():
        return between
    _, low, high = wilson(round(float(rates @ episodes)), int(episodes.sum()))
    return max(between, ((high - low) / 2 / normal_quantile()) ** 2)


def _freedom(variances: Sequence[float], counts: Sequence[int]) -> int:
    """Return Satterthwaite's degrees of freedom of a sum of means, rounded down."""
    squares = sum(v * v / (n - 1) for v, n in zip(variances, counts, strict=True))
    return max(int(sum(variances) ** 2 / squares + TIE_TOLERANCE), 1)


def is_trimmed(scores: Sequence[Array]) -> bool:
    """Return whether there are enough runs for an interquartile mean."""
    return sum(map(len, scores)) >= MIN_TRIMMED


def aggregate(scores: Sequence[Array], trimmed: bool, rng: np.random.Generator) -> Interval:
    """Return the interquartile mean, or mean, over tasks that count equally.

    The interval is Student's t with a stratified bootstrap standard error. Drawing n - 1 of n runs
    makes it unbiased for the mean (Rao and Wu 1988), and degrees of freedom are Satterthwaite's.

    Args:
        scores: Success rates of the runs of each task.
        trimmed: Drop a quarter of the values at each end.
        rng: Random generator.

    Returns:
        The value and its interval, within 0 and 1. It is NaN if a task has a single run, or if
        the runs of each task are equal.
    """
    count = sum(map(len, scores))
    cut = count // 4 / count if trimmed else 0.0
    value = float(_trimmed_mean([runs[None] for runs in scores], cut)[0])
    counts = [len(runs) for runs in scores]
    if min(counts) < 2:
        return Interval(value, math.nan, math.nan)
    draws = [runs[rng.integers(len(runs), size=(REPETITIONS, len(runs) - 1))] for runs in scores]
    error = float(_trimmed_mean(draws, cut).std())
    variances = [float(mean_and_std(runs)[1]) ** 2 / len(runs) for runs in scores]
    if not (error > TIE_TOLERANCE and sum(variances) > 0):
        return Interval(value, math.nan, math.nan)
    half = t_quantile(_freedom(variances, counts)) * error
    return Interval(value, max(value - half, 0.0), min(value + half, 1.0))


def _trimmed_mean(scores: Sequence[Array], cut: float) -> Array:
    """Return the mean between two quantiles, for samples of shape (samples, runs) per task.

    A run weighs the inverse of its task's number of runs, so that tasks count equally.

    Args:
        scores: Samples of each task.
        cut: Share of the weight to drop at each end.
    """
    values = np.concatenate(scores, axis=-1)
    weights = np.concatenate([np.full(each.shape[-1], 1 / each.shape[-1]) for each in scores])
    order = np.argsort(values, axis=-1)
    ends = np.cumsum(weights[order] / len(scores), axis=-1).clip(cut, 1 - cut)
    kept = np.diff(ends, axis=-1, prepend=cut)
    return (np.take_along_axis(values, order, axis=-1) * kept).sum(axis=-1) / (1 - 2 * cut)


def aggregate_improvement(ours: Sequence[Array], theirs: Sequence[Array]) -> Interval:
    """Return the probability of improvement of one method over another, averaged over tasks.

    Intervals of the tasks are combined as independent ones (Zou and Donner 2008).
    """
    tasks = [_improvement(x, y) for x, y in zip(ours, theirs, strict=True)]
    value = sum(each.value for each in tasks) / len(tasks)
    below = math.hypot(*(each.value - each.low for each in tasks)) / len(tasks)
    above = math.hypot(*(each.high - each.value for each in tasks)) / len(tasks)
    return Interval(value, value - below, value + above)


def _improvement(ours: Array, theirs: Array) -> Interval:
    difference = ours[:, None] - theirs[None, :]
    tied = np.abs(difference) < TIE_TOLERANCE
    probability = float(np.where(tied, 0.5, difference > 0).mean())
    return improvement_interval(probability, len(ours), len(theirs))
