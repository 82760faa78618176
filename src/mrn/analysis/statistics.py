"""Statistics for small numbers of runs, following Agarwal et al. 2021.

Per task: mean over seeds with a bootstrap interval, and the standard deviation reported by the
paper. Across tasks: interquartile mean with stratified bootstrap intervals, and the probability of
improvement (https://arxiv.org/abs/2108.13264).
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from mrn.utils.intervals import Interval

Array = NDArray[np.float64]

REPETITIONS = 2000
"""Number of random bootstrap samples."""
MAX_EXACT_SAMPLES = 50_000
"""Up to this number, all distinct samples are enumerated with their probabilities: 126 for 5 runs,
126 ** 2 for 5 runs of two methods each."""
LEVEL = 0.95
"""Confidence level of the intervals."""
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


def interquartile_mean(values: Array) -> Array:
    """Return the mean of the middle half along the last axis.

    A quarter of the values, rounded down, is dropped at each end.
    """
    ordered = np.sort(values, axis=-1)
    count = ordered.shape[-1]
    return ordered[..., count // 4 : count - count // 4].mean(axis=-1)


def bootstrap(
    scores: Sequence[Array],
    statistic: Callable[[list[Array]], Array],
    rng: np.random.Generator,
    repetitions: int = REPETITIONS,
    level: float = LEVEL,
) -> Interval:
    """Return a statistic with its stratified percentile bootstrap interval.

    Args:
        scores: Runs of each stratum (a task, or a method on a task). Runs are resampled with
            replacement within each stratum.
        statistic: Maps samples of shape (samples, runs) per stratum to one value per sample.
        rng: Random generator, used if there are too many samples to enumerate.
        repetitions: Number of random samples.
        level: Confidence level.

    Returns:
        The value and its interval. The interval is NaN if a stratum has a single run, because its
        variance is unknown.
    """
    value = float(statistic([runs[None] for runs in scores])[0])
    if min(len(runs) for runs in scores) < 2:
        return Interval(value, float("nan"), float("nan"))
    indices, weights = _resample([len(runs) for runs in scores], rng, repetitions)
    found = statistic([runs[index] for runs, index in zip(scores, indices, strict=True)])
    low, high = _percentiles(found, weights, level)
    return Interval(value, float(low), float(high))


def _resample(
    counts: Sequence[int], rng: np.random.Generator, repetitions: int
) -> tuple[list[NDArray[np.intp]], Array]:
    """Return indices of runs, shape (samples, runs) per stratum, and weights of the samples."""
    if math.prod(math.comb(2 * count - 1, count) for count in counts) <= MAX_EXACT_SAMPLES:
        return _all_samples(tuple(counts))
    indices = [rng.integers(count, size=(repetitions, count)) for count in counts]
    return indices, np.full(repetitions, 1 / repetitions)


def _percentiles(found: Array, weights: Array, level: float) -> Array:
    """Return both ends of the percentile interval over the first axis."""
    # The margin absorbs rounding in the cumulative sum of the weights.
    ends = np.array([(1 - level) / 2, (1 + level) / 2]) - 1e-12
    return np.quantile(found, ends, axis=0, weights=weights, method="inverted_cdf")


@lru_cache(maxsize=16)
def _all_samples(counts: tuple[int, ...]) -> tuple[list[NDArray[np.intp]], Array]:
    """Enumerate all samples of all strata, regardless of order, with their probabilities.

    Returns:
        Indices of runs, shape (samples, runs) per stratum, and probabilities, shape (samples,).
    """
    samples = [list(combinations_with_replacement(range(n), n)) for n in counts]
    each = [np.array([_probability(sample) for sample in stratum]) for stratum in samples]
    chosen = np.indices([len(stratum) for stratum in samples]).reshape(len(counts), -1)
    indices = [np.array(stratum)[which] for stratum, which in zip(samples, chosen, strict=True)]
    joint = [share[which] for share, which in zip(each, chosen, strict=True)]
    return indices, np.prod(joint, axis=0)


def _probability(sample: tuple[int, ...]) -> float:
    """Return the probability of n unordered draws from n: n! / (k_1! k_2! ...) / n ** n."""
    orders = math.factorial(len(sample))
    for times in Counter(sample).values():
        orders //= math.factorial(times)
    return orders / len(sample) ** len(sample)


def aggregate_iqm(scores: Sequence[Array], rng: np.random.Generator) -> Interval:
    """Return the interquartile mean of all runs of all tasks."""
    return bootstrap(scores, lambda d: interquartile_mean(np.concatenate(d, axis=-1)), rng)


def aggregate_mean(scores: Sequence[Array], rng: np.random.Generator) -> Interval:
    """Return the mean over tasks of the mean over runs."""
    return bootstrap(scores, lambda d: np.mean([t.mean(axis=-1) for t in d], axis=0), rng)


def mean_band(values: Array) -> tuple[Array, Array]:
    """Return the bootstrap interval of the mean over the first axis, for each epoch.

    Every epoch uses the same samples, as `aggregate_mean` with seed 0, so that a band does not
    flicker and agrees with the tables.

    Args:
        values: Shape (runs, epochs), NaN where a run has no value.

    Returns:
        Lower and upper ends, shape (epochs,); NaN where there are fewer than two values.
    """
    ends = np.full((2, values.shape[1]), np.nan)
    present = ~np.isnan(values)
    for pattern in np.unique(present, axis=1).T:
        if pattern.sum() > 1:
            epochs = (present == pattern[:, None]).all(axis=0)
            runs = values[pattern][:, epochs]
            (index,), weights = _resample([len(runs)], np.random.default_rng(0), REPETITIONS)
            ends[:, epochs] = _percentiles(runs[index].mean(axis=1), weights, LEVEL)
    return ends[0], ends[1]


def aggregate_improvement(
    ours: Sequence[Array], theirs: Sequence[Array], rng: np.random.Generator
) -> Interval:
    """Return the probability of improvement of one method over another."""
    tasks = len(ours)
    both = [*ours, *theirs]
    return bootstrap(both, lambda d: _improvement(d[:tasks], d[tasks:]), rng)


def _improvement(ours: Sequence[Array], theirs: Sequence[Array]) -> Array:
    """Return the probability of improvement for samples of shape (samples, runs) per task."""
    tasks = []
    for x, y in zip(ours, theirs, strict=True):
        difference = x[:, :, None] - y[:, None, :]  # (samples, our runs, their runs)
        tied = np.abs(difference) < TIE_TOLERANCE
        ahead = np.where(np.isnan(difference), np.nan, (difference > 0) & ~tied)
        tasks.append((ahead + 0.5 * tied).mean(axis=(1, 2)))
    return np.mean(tasks, axis=0)
