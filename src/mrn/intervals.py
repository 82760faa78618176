"""Confidence intervals of shares."""

import math
from statistics import NormalDist
from typing import NamedTuple


class Interval(NamedTuple):
    """A figure with the ends of its confidence interval."""

    value: float
    low: float
    high: float


def wilson(successes: int, trials: int, level: float = 0.95) -> Interval:
    """A share of independent trials with Wilson's interval (Wilson 1927).

    Unlike a share plus or minus its standard error it never leaves [0, 1], and it has a width
    where all trials, or none, succeeded.
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / trials
    centre = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    spread = math.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    half = z * spread / (1 + z**2 / trials)
    # Exactly 0 and 1 at the ends, where rounding would leave a trace.
    low = 0.0 if successes == 0 else centre - half
    return Interval(share, low, 1.0 if successes == trials else centre + half)
