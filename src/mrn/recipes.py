"""Recipes: named sets of settings, from which a run takes all that it is not given."""

from collections.abc import Mapping
from typing import Any

from mrn.utils.errors import unknown_name

PAPER = "paper"
"""The protocol of the paper (Sec. 5, and the released code): the defaults of all settings."""
FAST = "fast"
"""What solves FetchPush from a third of the steps; docs/recipes.md says how."""
DEFAULT_RECIPE = FAST
"""What `mrn train` and `mrn.train` take where none is named; suites take the paper's."""

RECIPES: Mapping[str, Mapping[str, Any]] = {
    PAPER: {},
    FAST: {
        "num_envs": 10,
        "cycles": 25,
        "warmup_episodes": 200,
        "tau": 0.1,
        "target_update_interval": 4,
        "policy_delay": 2,
        "action_penalty": 0.3,
        "redraws": 4,
    },
}
"""The settings of each, for every agent that has them; all others are an agent's defaults."""
EXCEPTIONS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    (FAST, "sac"): {"action_penalty": 0.0},  # its entropy keeps actions small enough
}
"""What a recipe has of its own for an agent."""


def find_recipe(name: str) -> Mapping[str, Any]:
    """The settings of the recipe of that name.

    Raises:
        UserError: There is none; lists those there are.
    """
    if name not in RECIPES:
        raise unknown_name("recipe", name, list(RECIPES))
    return RECIPES[name]
