"""Syntax of goal mixtures: `future=0.4,desired=0.4`."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from mrn.utils.errors import UserError, unknown_name

IMAGINED = "imagined"
"""Strategy that only algorithms with a model offer."""
STRATEGIES = ("future", "final", "episode", "geometric", "random", "desired", IMAGINED)
"""Strategies that select the new goal of a transition; see `mrn.replay.goals`."""

_EXAMPLE = "for example future=0.4,desired=0.4"


def parse_goal_mix(mix: Any) -> dict[str, float]:
    """Return the weight of each strategy, from text or a mapping.

    Raises:
        UserError: The mixture is empty, a strategy is unknown or occurs twice, or a weight is not
            a number in [0, 1], or the weights exceed 1 in total.
    """
    if not isinstance(mix, str | Mapping):
        raise UserError(f"goal_mix must be text or a table of weights, {_EXAMPLE}; got {mix!r}")
    pairs = _split(mix) if isinstance(mix, str) else list(mix.items())
    if not pairs:
        raise UserError(f"goal_mix must name at least one strategy, {_EXAMPLE}")
    weights: dict[str, float] = {}
    for name, value in pairs:
        if name not in STRATEGIES:
            raise unknown_name("strategy in goal_mix", str(name), list(STRATEGIES))
        if name in weights:
            raise UserError(f"goal_mix names the strategy {name!r} twice")
        weights[name] = _weight(name, value)
    total = math.fsum(weights.values())
    if total > 1 + 1e-9:
        raise UserError(f"the weights of goal_mix must sum to at most 1, got {total:g}")
    return weights


def format_goal_mix(weights: Mapping[str, float]) -> str:
    """Return a mixture as text."""
    return ",".join(f"{name}={weight!r}" for name, weight in weights.items())


def _split(text: str) -> list[tuple[str, str]]:
    """Return the names and weights in `name=weight,name=weight`."""
    words: Iterable[str] = text.split(",") if text.strip() else ()
    parts = [word.partition("=") for word in words]
    return [(name.strip(), value) for name, _, value in parts]


def _weight(name: str, value: Any) -> float:
    """Return the weight of a strategy as a number."""
    try:
        weight = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        weight = math.nan
    if not 0 <= weight <= 1:  # also NaN
        raise UserError(f"goal_mix: the weight of {name!r} must be a number in [0, 1], got {value}")
    return weight
