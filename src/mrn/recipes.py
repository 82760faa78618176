"""Recipes: named presets of settings. Explicit settings override them."""

import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from mrn.utils.errors import unknown_name

PAPER = "paper"
"""Protocol of the paper (Sec. 5 and the released code): the default of every setting."""
FAST = "fast"
"""Preset that solves FetchPush in less than half the steps; see docs/recipes.md."""
TUNED = "tuned"
"""The settings of `fast`, except where `mrn tune` found others: those in tuned.toml."""
DEFAULT_RECIPE = FAST
"""Default of `mrn train` and `mrn.train`; suites default to the paper's."""

_FAST = {
    "num_envs": 10,
    "cycles": 25,
    "warmup_episodes": 200,
    "tau": 0.1,
    "target_update_interval": 4,
    "action_penalty": 0.3,
    "redraws": 4,
}
_FAST_OVERRIDES: dict[str, dict[str, Any]] = {
    "mher": {"goal_mix": "imagined=0.8"},
    "sac": {"action_penalty": 0.0},  # the entropy term keeps actions small enough
    # Their published 0.0003 goes with an update per environment step, 12 times as many.
    **{algo: {"learning_rate": 1e-3} for algo in ("crl", "cmd", "tmd", "mqe", "qrl")},
}
RECIPES: Mapping[str, Mapping[str, Any]] = {PAPER: {}, FAST: _FAST, TUNED: _FAST}
"""Settings of each recipe; algorithms ignore those they lack. All others keep their defaults."""
OVERRIDES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    (PAPER, "mher"): {"goal_mix": "imagined=0.8"},
    **{(name, algo): own for name in (FAST, TUNED) for algo, own in _FAST_OVERRIDES.items()},
}
"""Settings of a recipe that differ for one algorithm, by (recipe, algorithm)."""
FAMILIES: Mapping[str, Mapping[str, Mapping[str, Any]]] = tomllib.loads(
    (resources.files("mrn") / "tuned.toml").read_text(encoding="utf-8")
)
"""Settings of `tuned` that differ for some tasks, by prefix of the task and by algorithm."""


def find_recipe(name: str) -> Mapping[str, Any]:
    """Return the settings of a recipe.

    Raises:
        UserError: The name is unknown; the message lists the available ones.
    """
    if name not in RECIPES:
        raise unknown_name("recipe", name, list(RECIPES))
    return RECIPES[name]


def find_overrides(task: str) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return `OVERRIDES` on a task, with the tuned settings of the longest matching prefix."""
    found = dict(OVERRIDES)
    for prefix in sorted(FAMILIES, key=len):
        if task.startswith(prefix):
            for algo, own in FAMILIES[prefix].items():
                found[TUNED, algo] = {**OVERRIDES.get((TUNED, algo), {}), **own}
    return found
