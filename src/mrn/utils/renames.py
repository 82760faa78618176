"""Names that changed in version 0.2.0. No other module knows the old names.

Files of earlier versions are translated on reading: config.json, metrics.csv, checkpoints, weights
and suites. The command line and the Python API raise an error with the new name.
"""

from collections.abc import Callable, Mapping
from typing import Any

SETTINGS = {
    "agent": "algo",
    "learning": "algo_config",
    "memory": "replay",
    "episodes": "num_envs",
    "updates": "gradient_steps",
    "random_episodes": "warmup_episodes",
    "workers": "async_envs",
    "worker_timeout": "env_timeout",
    "width": "hidden_dim",
    "target_keep": "tau",
    "target_every": "target_update_interval",
    "actor_every": "policy_delay",
    "noise": "exploration_noise",
    "random_actions": "random_action_prob",
    "target_noise": "target_policy_noise",
    "entropy": "target_entropy",
    "temperature": "ent_coef",
    "capacity": "buffer_size",
    "relabel": "goal_selection_strategy",
    "relabel_probability": "her_ratio",
}
"""Settings of a run: old name to new name."""
LISTS = {"agents": "algos"}
"""Lists in suite files."""
COLUMNS = {"temperature": "ent_coef"}
"""Columns of metrics.csv."""
TENSORS = {"learner.": "algorithm."}
"""Prefixes of tensor names in weights files and checkpoints."""
COMMANDS = {"agents": "algos"}
"""Subcommands of `mrn`."""
SB3_KEYWORDS = {"critic_width": "critic_hidden_dim"}
"""Keyword arguments of the Stable-Baselines3 policies."""

_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    # tau = 1 - target_keep, rounded because 1 - 0.9 is not 0.1 in floating point.
    "target_keep": lambda keep: round(1 - keep, 12) if type(keep) in (int, float) else keep,
}
_OLD_FIELDS = ("agent", "learning", "memory")


def upgrade_config(data: Any) -> Any:
    """Translate the settings in a config.json of an earlier version; return others unchanged."""
    if not isinstance(data, dict) or not any(name in data for name in _OLD_FIELDS):
        return data
    return upgrade_settings(data)


def upgrade_settings(data: Mapping[str, Any]) -> dict[str, Any]:
    """Translate the names of settings at the top level and in groups."""
    return {
        SETTINGS.get(name, name): upgrade_settings(value)
        if isinstance(value, dict) and name in (*_OLD_FIELDS, "schedule")
        else _CONVERSIONS.get(name, lambda same: same)(value)
        for name, value in data.items()
    }


def upgrade_suite(data: dict[str, Any]) -> dict[str, Any]:
    """Translate the names in a suite file."""
    suite = {(LISTS | {"agent": "algo"}).get(name, name): value for name, value in data.items()}
    for name, value in suite.items():
        if name == "settings" and isinstance(value, dict):
            suite[name] = upgrade_settings(value)
        elif name == "grid" and isinstance(value, dict):
            suite[name] = _upgrade_grid(value)
        elif name in ("algo", "task") and isinstance(value, dict):
            suite[name] = {
                key: upgrade_settings(own) if isinstance(own, dict) else own
                for key, own in value.items()
            }
    return suite


def _upgrade_grid(grid: dict[str, Any]) -> dict[str, Any]:
    """Translate the settings of a grid, each with a list of values."""
    upgraded = {}
    for name, values in grid.items():
        if name in _CONVERSIONS and isinstance(values, list):
            values = [_CONVERSIONS[name](value) for value in values]
        upgraded[SETTINGS.get(name, name)] = values
    return upgraded


def upgrade_columns(names: list[str]) -> list[str]:
    """Translate the header of a metrics.csv."""
    return [COLUMNS.get(name, name) for name in names]


def upgrade_tensors(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Translate tensor names of a weights file or checkpoint."""
    return {_new_tensor_name(name): value for name, value in tensors.items()}


def _new_tensor_name(name: str) -> str:
    for old, new in TENSORS.items():
        if name.startswith(old):
            return new + name.removeprefix(old)
    return name


def renamed(name: str, flag: bool = False) -> str | None:
    """Return the message for a setting that was renamed, or None.

    Args:
        name: Name of the setting in Python.
        flag: Format both names as command-line flags.
    """
    if name not in SETTINGS:
        return None
    old, new = (f"--{each.replace('_', '-')}" if flag else each for each in (name, SETTINGS[name]))
    note = " (tau = 1 - target_keep)" if name == "target_keep" else ""
    return f"{old} was renamed to {new}{note}"
