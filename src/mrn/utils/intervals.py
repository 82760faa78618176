"""A figure with its confidence interval, and the interval of a counted share."""

from math import nan, sqrt
from statistics import NormalDist
from typing import NamedTuple


class Interval(NamedTuple):
    """A figure with the ends of its confidence interval; NaN for ends that are not known."""

    value: float
    low: float
    high: float


def wilson(successes: float, episodes: int, level: float = 0.95) -> Interval:
    """The share of successes among counted episodes, with Wilson's score interval.

    Unlike mean +- deviation it stays within 0 and 1, and does not shrink to a point where all
    episodes succeeded or all failed (Wilson 1927; Brown, Cai and DasGupta 2001,
    https://doi.org/10.1214/ss/1009213286).

    Args:
        successes: Episodes that succeeded.
        episodes: All of them.
        level: Probability that the interval is to cover the true rate.

    Returns:
        The share; of no episodes nothing is known, so that is NaN, and its interval all of [0, 1].
    """
    if episodes == 0:
        return Interval(nan, 0.0, 1.0)
    z = NormalDist().inv_cdf((1 + level) / 2)
    total = episodes + z * z
    centre = (successes + z * z / 2) / total
    half = z / total * sqrt(successes * (episodes - successes) / episodes + z * z / 4)
    # Where none or all succeeded one end is exact, but for rounding.
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == episodes else centre + half
    return Interval(successes / episodes, low, high)
