"""Statistics of few runs, by the advice of Agarwal et al. 2021 (https://arxiv.org/abs/2108.13264).

Per task: mean over seeds with a bootstrap interval, and the standard deviation, as the paper has
it. Across tasks: the interquartile mean with stratified bootstrap intervals, and the probability of
improvement.
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
"""Random bootstrap samples."""
ALL = 50_000
"""Samples up to which all that differ are taken instead, each with its probability: 126 of 5 runs,
126 ** 2 of 5 runs of two methods each."""
TIE_TOLERANCE = 1e-9
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
        level = np.abs(difference) < TIE_TOLERANCE
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
    if math.prod(math.comb(2 * count - 1, count) for count in counts) <= ALL:
        places, likely = _every_draw(tuple(counts))
    else:
        places = [rng.integers(count, size=(repetitions, count)) for count in counts]
        likely = np.full(repetitions, 1 / repetitions)
    found = statistic([runs[place] for runs, place in zip(scores, places, strict=True)])
    # Rounding must not carry a sum of probabilities beyond the end that it is at.
    ends = np.array([(1 - level) / 2, (1 + level) / 2]) - 1e-12
    low, high = np.quantile(found, ends, weights=likely, method="inverted_cdf")
    return Interval(value, float(low), float(high))


@lru_cache(maxsize=16)  # a band asks for the same at each epoch
def _every_draw(counts: tuple[int, ...]) -> tuple[list[NDArray[np.intp]], Array]:
    """Every way to draw anew from all strata, but for the order, and how likely each is.

    Returns:
        Places of runs, shape (samples, runs) for each stratum, and shape (samples,).
    """
    draws = [list(combinations_with_replacement(range(n), n)) for n in counts]
    each = [np.array([_probability(draw) for draw in stratum]) for stratum in draws]
    chosen = np.indices([len(stratum) for stratum in draws]).reshape(len(counts), -1)
    places = [np.array(stratum)[which] for stratum, which in zip(draws, chosen, strict=True)]
    together = [share[which] for share, which in zip(each, chosen, strict=True)]
    return places, np.prod(together, axis=0)


def _probability(draw: tuple[int, ...]) -> float:
    """Of n places drawn from n, in any order: n! / (k_1! k_2! ...) orders of n ** n."""
    orders = math.factorial(len(draw))
    for times in Counter(draw).values():
        orders //= math.factorial(times)
    return orders / len(draw) ** len(draw)


def aggregate_iqm(scores: Sequence[Array], rng: np.random.Generator) -> Interval:
    """Interquartile mean of all runs of all tasks."""
    return bootstrap(scores, lambda d: interquartile_mean(np.concatenate(d, axis=-1)), rng)


def aggregate_mean(scores: Sequence[Array], rng: np.random.Generator) -> Interval:
    """Mean over tasks of the mean over runs."""
    return bootstrap(scores, lambda d: np.mean([t.mean(axis=-1) for t in d], axis=0), rng)


def mean_band(values: Array) -> tuple[Array, Array]:
    """Ends of the interval of the mean over the first axis, of what is not NaN.

    Of one value there is none: NaN.
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
