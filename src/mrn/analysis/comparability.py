"""Warnings about runs that differ in settings other than the compared ones."""

from collections.abc import Iterable
from typing import Any

from mrn.analysis.epochs import Methods, common_lengths, lagging_runs
from mrn.analysis.run import Run
from mrn.config import flatten, resolve, settings_of
from mrn.recipes import RECIPES, find_overrides
from mrn.runs.run_dir import MUTABLE_SETTINGS
from mrn.utils.renames import SETTINGS as RENAMED_SETTINGS

COMPARED = ("algo", "critic", "recipe", "variant", "seed")
"""Settings in which methods, and the runs of a method, are meant to differ."""
FROM_RECIPE = "as in its recipe"
SIMULATION_PACKAGES = ("mujoco", "envpool", "gymnasium-robotics", "torch")
"""Packages whose version affects physics or arithmetic."""


def differences(task: str, methods: Methods, names: dict[str, str]) -> list[str]:
    """Return warnings to read before comparing the methods on a task, one sentence each.

    Args:
        task: Name of the task.
        methods: Runs of each method.
        names: Display names of the methods.
    """
    found = []
    for method, runs in methods.items():
        within = _differing((run, "") for run in runs)
        infos = [run.info for run in runs if run.info]
        if len({info.machine.get("precision", "float32") for info in infos}) > 1:
            within["precision"] = ""  # `auto` depends on the machine
        if within:
            settings = ", ".join(sorted(within))
            found.append(f"{task}, {names[method]}: seeds differ in {settings}")
    known = ([run for run in runs if run.config is not None] for runs in methods.values())
    first = [run for runs in known for run in runs[:1]]
    between = _differing(((run, names[run.method]) for run in first), _varied(first))
    if between:
        settings = ", ".join(f"{name} ({between[name]})" for name in sorted(between))
        found.append(f"{task}: methods differ in {settings}")
    found += _version_differences(task, methods) + _engine_difference(task, methods)
    lagging = [run for runs in lagging_runs(methods).values() for run in runs]
    if lagging:
        who = "; ".join(f"{names[run.method]} seed {run.seed}" for run in lagging)
        found.append(
            f"{task}: epochs differ in length; runs before the first common epoch are left out: "
            f"{who}"
        )
    if len(set().union(*common_lengths(methods).values())) > 1:
        found.append(
            f"{task}: epochs differ in length and do not align yet; methods are compared after "
            "equal numbers of epochs but not of episodes, and none is marked as best"
        )
    return found


def _version_differences(task: str, methods: Methods) -> list[str]:
    """Return a warning if runs used different versions of physics or arithmetic libraries."""
    used: dict[str, set[str]] = {}
    infos = [run.info for runs in methods.values() for run in runs if run.info]
    for info in infos:
        for part in (info.versions, *info.earlier_versions):
            for name in SIMULATION_PACKAGES:
                if name in part:
                    used.setdefault(name, set()).add(part[name])
    each = [f"{name} ({', '.join(sorted(v))})" for name, v in used.items() if len(v) > 1]
    return [f"{task}: runs used different versions of {', '.join(each)}"] if each else []


def _engine_difference(task: str, methods: Methods) -> list[str]:
    """Return a warning if the engine `auto` was not the same one in all runs."""
    infos = [run.info for runs in methods.values() for run in runs if run.info]
    used = {info.machine.get("engine") for info in infos if info.config.engine == "auto"}
    names = sorted(filter(None, used))
    return [f"{task}: runs used different engines ({', '.join(names)})"] if names[1:] else []


def _varied(runs: Iterable[Run]) -> set[str]:
    """Return the settings in which variants of the same algorithm, critic and recipe differ."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for run in runs:
        if (config := run.config) is not None:
            key = (config.algo, config.critic, config.recipe)
            groups.setdefault(key, []).append(flatten(config.to_dict()))
    return {
        name
        for variants in groups.values()
        for name in variants[0]
        if any(settings.get(name) != variants[0][name] for settings in variants)
    }


def _differing(runs: Iterable[tuple[Run, str]], expected: Iterable[str] = ()) -> dict[str, str]:
    """Return settings with more than one value, and who has which.

    Args:
        runs: Runs with the display names of their methods.
        expected: Settings that are meant to differ.
    """
    values: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    expected = {*MUTABLE_SETTINGS, *COMPARED, *expected}
    for run, shown in runs:
        if run.config is None:
            continue
        settings = run.config.to_dict()
        # A grid label NAME=VALUE documents the difference.
        labels = (part.partition("=")[0] for part in run.config.variant.split("+"))
        expected |= {RENAMED_SETTINGS.get(name, name) for name in labels}
        # Settings of an algorithm are compared only between runs of that algorithm.
        own = settings.pop("algo_config")
        config = run.config
        defaults = resolve(config.algo, config.recipe, config.task, imports=False)
        by_recipe = {k: v for each in defaults.values() for k, v in settings_of(each).items()}
        by_algo = find_overrides(config.task)
        own_overrides = [each for (_, algo), each in by_algo.items() if algo == config.algo]
        for algo, part, overrides in (
            ("", flatten(settings), by_algo.values()),
            (config.algo, own, own_overrides),
        ):
            recipe_names = {name for each in (*RECIPES.values(), *overrides) for name in each}
            for name, value in part.items():
                # Recipes are expected to differ in the settings they provide. The settings of a
                # custom algorithm are unknown here and taken to be its recipe's.
                is_recipes = name in recipe_names and value == by_recipe.get(name, value)
                text = FROM_RECIPE if is_recipes else str(value)
                values.setdefault((algo, name), []).append((shown, text, str(value)))
    return {
        name: "; ".join(f"{shown}: {text}" for shown, text, _ in each)
        for (_, name), each in values.items()
        if name not in expected
        and len({text for _, text, _ in each}) > 1
        and len({value for _, _, value in each}) > 1
    }
