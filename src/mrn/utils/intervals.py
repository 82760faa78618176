"""Confidence intervals."""

from functools import lru_cache
from math import cos, isnan, nan, pi, sin, sqrt, tan
from statistics import NormalDist
from typing import NamedTuple

LEVEL = 0.95
"""Confidence level of the intervals."""


class Interval(NamedTuple):
    """A value with the ends of its confidence interval; NaN for unknown ends."""

    value: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether the interval has ends."""
        return not isnan(self.low)


def wilson(successes: float, episodes: int, level: float = LEVEL) -> Interval:
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
    z = normal_quantile(level)
    total = episodes + z * z
    center = (successes + z * z / 2) / total
    half = z / total * sqrt(successes * (episodes - successes) / episodes + z * z / 4)
    # If none or all succeed, one end is exact; avoid rounding errors.
    low = 0.0 if successes == 0 else center - half
    high = 1.0 if successes == episodes else center + half
    return Interval(successes / episodes, low, high)


def normal_quantile(level: float = LEVEL) -> float:
    """Return the half-width of a two-sided normal interval in standard deviations."""
    return NormalDist().inv_cdf((1 + level) / 2)


@lru_cache(maxsize=256)
def t_quantile(freedom: int, level: float = LEVEL) -> float:
    """Return the half-width of a two-sided Student-t interval in standard errors.

    Args:
        freedom: Degrees of freedom, at least 1.
        level: Confidence level.
    """
    low, high = 0.0, pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        if _t_probability(angle, freedom) < level:
            low = angle
        else:
            high = angle
    return sqrt(freedom) * tan(low)


def _t_probability(angle: float, freedom: int) -> float:
    """Return P(|T| < t) for angle = atan(t / sqrt(freedom)); Abramowitz and Stegun 26.7.3-4."""
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= cos(angle) ** 2 * (k - 1) / k
        total += term
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total


def improvement_interval(probability: float, ours: int, theirs: int) -> Interval:
    """Return a probability of improvement with Newcombe's score interval.

    It stays within 0 and 1 and has a width even if all pairs agree. See Newcombe 2006, method 5
    (https://doi.org/10.1002/sim.2324). Student's t replaces his normal quantile, with which three
    runs that beat three others would exclude 0.5; by chance, that happens in one case of ten.

    Args:
        probability: Share of the pairs of runs in which ours is better; ties count half.
        ours: Number of our runs.
        theirs: Number of their runs.
    """
    weight = (ours + theirs) / 2 - 1
    quantile = t_quantile(ours + theirs - 2)

    def outside(value: float) -> bool:
        spread = 1 + weight * ((1 - value) / (2 - value) + value / (1 + value))
        variance = value * (1 - value) * spread / (ours * theirs)
        return (value - probability) ** 2 > quantile**2 * variance

    ends = []
    for end in (0.0, 1.0):
        near, far = probability, end
        for _ in range(60):
            middle = (near + far) / 2
            near, far = (near, middle) if outside(middle) else (middle, far)
        ends.append(far)
    return Interval(probability, *ends)
