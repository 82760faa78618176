"""Recipes: named presets of settings. Explicit settings override them."""

from collections.abc import Mapping
from typing import Any

from mrn.utils.errors import unknown_name

PAPER = "paper"
"""Protocol of the paper (Sec. 5 and the released code): the default of every setting."""
FAST = "fast"
"""Preset that solves FetchPush in less than half the steps; see docs/recipes.md."""
DEFAULT_RECIPE = FAST
"""Default of `mrn train` and `mrn.train`; suites default to the paper's."""

RECIPES: Mapping[str, Mapping[str, Any]] = {
    PAPER: {},
    FAST: {
        "num_envs": 10,
        "cycles": 25,
        "warmup_episodes": 200,
        "tau": 0.1,
        "target_update_interval": 4,
        "action_penalty": 0.3,
        "redraws": 4,
    },
}
"""Settings of each recipe; algorithms ignore those they lack. All others keep their defaults."""
OVERRIDES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    (PAPER, "mher"): {"goal_mix": "imagined=0.8"},
    (FAST, "mher"): {"goal_mix": "imagined=0.8"},
    (FAST, "sac"): {"action_penalty": 0.0},  # the entropy term keeps actions small enough
    # Their published 0.0003 goes with an update per environment step, 12 times as many.
    **{(FAST, algo): {"learning_rate": 1e-3} for algo in ("crl", "cmd", "tmd", "mqe", "qrl")},
}
"""Settings of a recipe that differ for one algorithm, by (recipe, algorithm)."""


def find_recipe(name: str) -> Mapping[str, Any]:
    """Return the settings of a recipe.

    Raises:
        UserError: The name is unknown; the message lists the available ones.
    """
    if name not in RECIPES:
        raise unknown_name("recipe", name, list(RECIPES))
    return RECIPES[name]
