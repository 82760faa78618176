"""Search spaces of `mrn tune`: TOML files with ranges, choices and fixed values of settings."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any, get_args, get_type_hints

from mrn.algorithms import AUTO
from mrn.config import Config, flatten, resolve
from mrn.critics import find_critic
from mrn.utils.errors import UserError
from mrn.utils.files import read_limited

COMMON = "common"
"""Space of algorithms without a file: the settings that all algorithms have."""
BY_OPTION = {
    "task": "TASK",
    "algo": "--algo",
    "recipe": "--recipe",
    "seed": "--seeds",
    "variant": "--name",
    "stop_at": "--epochs",
}
"""Settings that a space cannot contain, with the argument of `mrn tune` to use instead."""
MEASURED_BY = ("cycles", "num_envs", "eval_episodes", "eval_interval")
"""Settings that all trials share, because they are compared at equal numbers of steps."""
FORMS = "{ low = ..., high = ... }, optionally with log = true, or { choices = [...] }"


@dataclass(frozen=True)
class Space:
    """Settings to search, each a range or a list of choices, and fixed settings."""

    searched: dict[str, dict[str, Any]]
    """`low`, `high` and `log`, or `choices`, by setting. Bounds of integer settings are integers,
    all others are floats."""
    fixed: dict[str, Any]

    def values_in(self, config: Config) -> dict[str, Any] | None:
        """Return a configuration's values of the searched settings; None if one is outside."""
        settings = flatten(config.to_dict())
        inside = all(_is_inside(settings[name], each) for name, each in self.searched.items())
        return {name: settings[name] for name in self.searched} if inside else None


def find_space(algo: str) -> tuple[str, str]:
    """Return the content of the included space of an algorithm, and its name for messages.

    Algorithms without a file in `mrn/sweeps/spaces` have the common space.
    """
    folder = resources.files("mrn.sweeps") / "spaces"
    file = folder / f"{algo}.toml"
    if not (algo.isidentifier() and file.is_file()):
        file = folder / f"{COMMON}.toml"
    return file.read_text(encoding="utf-8"), f"spaces/{file.name}"


def read_space(path: Path | None, task: str, algo: str, critic: str, recipe: str) -> Space:
    """Read a space and check it against the settings of the runs.

    Args:
        path: TOML file; None for the included space of the algorithm.
        task: Task of the runs.
        algo: Algorithm, which determines the available settings.
        critic: Critic, or `auto`.
        recipe: Recipe, which provides the settings left out.

    Raises:
        UserError: The file does not exist, or a setting or value is not allowed.
    """
    where = str(path)
    try:
        if path is None:
            text, where = find_space(algo)
        else:
            text = read_limited(path).decode()
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a huge number, or deep nesting
        raise UserError(f"{where} is not valid TOML: {error}") from None
    chosen = {"task": task, "algo": algo, "critic": critic, "recipe": recipe}
    try:
        return _parse(data, chosen)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None


def _parse(data: Mapping[str, Any], chosen: dict[str, str]) -> Space:
    """Return the space in a TOML table.

    Raises:
        UserError: Names the setting, the problem and the fix.
    """
    # Keyword arguments of an environment are a table, but not a range.
    searched = {k: v for k, v in data.items() if isinstance(v, dict) and k != "env_kwargs"}
    fixed = {k: v for k, v in data.items() if k not in searched}
    for name in data:
        if name in BY_OPTION:
            raise UserError(f"{name} cannot be part of a space; use {BY_OPTION[name]}")
    if "critic" in fixed:
        raise UserError("critic has one value; use --critic, or a list of choices")
    if "critic" in searched and chosen["critic"] != AUTO:
        raise UserError("critic is searched; remove it, or remove --critic")
    Config.of(**chosen, **fixed)
    kinds = _number_types(chosen["algo"], chosen["recipe"])
    parsed = {name: _parse_entry(name, each, kinds, chosen) for name, each in searched.items()}
    if not parsed:
        raise UserError(f"it has no setting to search; write NAME = {FORMS}")
    return Space(parsed, fixed)


def _parse_entry(
    name: str, entry: dict[str, Any], kinds: Mapping[str, type | None], chosen: dict[str, str]
) -> dict[str, Any]:
    """Return a range or a list of choices, with both ends or all values checked."""
    is_range = {"low", "high"} <= set(entry) <= {"low", "high", "log"}
    if is_range:
        values = [entry["low"], entry["high"]]
    elif set(entry) == {"choices"}:
        values = entry["choices"]
        _check_choices(name, values)
    else:
        raise UserError(f"{name} must be {FORMS}, or a value; got {entry}")
    for value in values:  # bounds of settings are intervals, so the ends of a range suffice
        Config.of(**chosen | {name: value})
        if name == "critic":
            find_critic(value)
    if name not in kinds:
        raise UserError(
            f"{name} cannot be searched, because it must be equal for all trials; give it one value"
        )
    if not is_range:
        return {"choices": values}
    number = kinds[name]
    if number is None:
        raise UserError(f"{name} is not a number; write {name} = {{ choices = [...] }}")
    low, high, log = number(entry["low"]), number(entry["high"]), entry.get("log", False)
    if low >= high:
        raise UserError(f"{name}: low must be below high, got low = {low} and high = {high}")
    if not isinstance(log, bool):
        raise UserError(f"{name}: log must be true or false, got {log!r}")
    if log and low <= 0:
        raise UserError(f"{name}: low must be above 0 if log is true, got {low}")
    return {"low": low, "high": high, "log": log}


def _check_choices(name: str, values: Any) -> None:
    """Check that choices differ and can be stored as JSON."""
    if not isinstance(values, list) or len(values) < 2:
        raise UserError(f"{name}: choices must be a list of at least two values, got {values!r}")
    for value in values:
        if not isinstance(value, bool | int | float | str):
            raise UserError(f"{name}: choices must be numbers, strings or booleans, got {value!r}")
        if values.count(value) > 1:
            raise UserError(f"{name}: choices must differ, got {value!r} twice")


def _number_types(algo: str, recipe: str) -> dict[str, type | None]:
    """Return the settings that can be searched, with the type of those that are numbers."""
    kinds: dict[str, type | None] = {"critic": None}
    for group in resolve(algo, recipe).values():
        hints = get_type_hints(type(group))
        for item in fields(group):
            hint = hints[item.name]
            types = {hint, *get_args(hint)}
            kinds[item.name] = next((kind for kind in (float, int) if kind in types), None)
    return {name: kind for name, kind in kinds.items() if name not in MEASURED_BY}


def _is_inside(value: Any, entry: Mapping[str, Any]) -> bool:
    if "choices" in entry:
        return value in entry["choices"]
    return bool(entry["low"] <= value <= entry["high"])
