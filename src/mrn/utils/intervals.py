"""Confidence intervals."""

from math import nan, sqrt
from statistics import NormalDist
from typing import NamedTuple


class Interval(NamedTuple):
    """A value with the ends of its confidence interval; NaN for unknown ends."""

    value: float
    low: float
    high: float


def wilson(successes: float, episodes: int, level: float = 0.95) -> Interval:
    """Return a success rate with Wilson's score interval.

    Unlike the normal approximation, the interval stays within 0 and 1. It does not shrink to a
    point if all episodes succeed or fail. See Wilson 1927 and Brown, Cai and DasGupta 2001
    (https://doi.org/10.1214/ss/1009213286).

    Args:
        successes: Number of successful episodes.
        episodes: Number of episodes.
        level: Confidence level.

    Returns:
        The rate and its interval. Without episodes, the rate is NaN and the interval [0, 1].
    """
    if episodes == 0:
        return Interval(nan, 0.0, 1.0)
    z = NormalDist().inv_cdf((1 + level) / 2)
    total = episodes + z * z
    center = (successes + z * z / 2) / total
    half = z / total * sqrt(successes * (episodes - successes) / episodes + z * z / 4)
    # If none or all succeed, one end is exact; avoid rounding errors.
    low = 0.0 if successes == 0 else center - half
    high = 1.0 if successes == episodes else center + half
    return Interval(successes / episodes, low, high)
