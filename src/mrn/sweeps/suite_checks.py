"""Validation of suites, with error messages that name the table in the TOML file."""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrn.algorithms import AUTO, find_algorithm
from mrn.config import Config, flatten
from mrn.critics import find_critic
from mrn.recipes import RECIPES, find_recipe
from mrn.utils.errors import UserError, unknown_name
from mrn.utils.naming import NO_CRITIC, safe_name

if TYPE_CHECKING:
    from mrn.sweeps.suites import Suite

LISTS = {
    "task": "tasks",
    "critic": "critics",
    "algo": "algos",
    "recipe": "recipes",
    "seed": "seeds",
}
"""Settings of a run that a suite lists, with the name of the list."""
GRID = "[grid]"

Table = tuple[str, tuple[str, ...], dict[str, Any]]
"""Title of a table, the algorithms it applies to, and its settings."""


def check_top_level(data: dict[str, Any], suite_type: type["Suite"]) -> None:
    """Check the keys above the tables of a suite file for likely mistakes.

    Raises:
        UserError: A key is a setting of the runs, a list is misspelled, or `tasks` is missing.
    """
    for name, plural in LISTS.items():
        if name in data and not isinstance(data[name], dict):
            raise UserError(f"{name} must be a list named {plural!r}: {plural} = [...]")
    variants = data.get("variant", [])
    if not isinstance(variants, list) or not all(isinstance(each, dict) for each in variants):
        raise UserError("variant must be a repeated table: write [[variant]], not [variant]")
    unknown = sorted(set(data) - {item.name for item in fields(suite_type)})
    settings = set(flatten(Config("any task").to_dict())) - set(LISTS)
    if unknown and unknown[0] in settings:
        raise UserError(f"{unknown[0]} is a setting of the runs: put it under [settings]")
    if not unknown and "tasks" not in data:
        raise UserError(
            'tasks is missing: add, for example, tasks = ["FetchPush"]; `mrn tasks` lists them'
        )


def check_structure(suite: "Suite") -> None:
    """Check lists, the folder, and the tables per algorithm, task, variant and grid.

    Raises:
        UserError: A list is empty, or a table is malformed or belongs to an unknown name.
    """
    for name in LISTS.values():
        if not getattr(suite, name):
            raise UserError(f"{name} must not be empty")
    if "\0" in suite.folder or Path(suite.folder).is_absolute() or ".." in Path(suite.folder).parts:
        raise UserError(f"folder must be inside the runs folder, got {suite.folder!r}")
    for kind, known in (("algo", suite.algos), ("task", suite.tasks)):
        for name, own in getattr(suite, kind).items():
            if name not in known:
                raise UserError(f"[{kind}.{name}]: {unknown_name(kind, name, list(known))}")
            if not isinstance(own, dict):
                raise UserError(f"[{kind}]: {name} must be a separate table, [{kind}.{name}]")
    for name, values in suite.grid.items():
        if not isinstance(values, list) or not values:
            example = values if values != [] else "1, 2"
            raise UserError(
                f"{GRID}: {name} must be a list of values, for example {name} = [{example}], "
                f"got {values!r}"
            )
    _check_variants(suite)


def _check_variants(suite: "Suite") -> None:
    """Check the names of variants.

    Raises:
        UserError: A name is missing, invalid or occurs twice, or settings have no name.
    """
    names: list[str] = []
    for number, variant in enumerate(suite.variant, start=1):
        title = f"[[variant]] number {number}"
        if "name" not in variant:
            raise UserError(
                f'{title}: name is missing: add, for example, name = "slow-targets", or name = "" '
                "for the baseline"
            )
        name = variant["name"]
        if not isinstance(name, str) or name != safe_name(name) or "+" in name:
            raise UserError(
                f"{title}: name must consist of letters, digits, '-', '_', '.' and '=', got "
                f"{name!r}"
            )
        if name in RECIPES:
            raise UserError(f"{title}: {name!r} is the name of a recipe; choose another name")
        if name in names:
            raise UserError(f"{title}: the name {name!r} occurs twice; names must be unique")
        if not name and len(variant) > 1:
            raise UserError(
                f'{title}: name = "" is the baseline, which has no settings; name this variant'
            )
        names.append(name)


def check_names(suite: "Suite") -> None:
    """Reject settings in a table where they would have no effect or an ambiguous one.

    Raises:
        UserError: Names the table, the setting and the fix.
    """
    varied = {name for variant in suite.variant for name in variant} - {"name"}
    for title, _, settings in (*_tables(suite), (GRID, (), suite.grid)):
        compares = title == GRID or title.startswith("[[")
        for name in settings:
            if name in LISTS:
                raise UserError(f"{title}: {name} belongs to {LISTS[name]!r} above the tables")
            if compares and name == "variant":
                raise UserError(f"{title}: variant is not a setting here; it is derived")
            if name == "variant" and suite.variant:
                raise UserError(f"{title}: variant cannot be combined with [[variant]]")
            if title != GRID and name in suite.grid:
                raise UserError(f"{title}: {name} is also under {GRID}; keep one of them")
            if not title.startswith("[[") and name in varied:
                raise UserError(f"{title}: {name} is also in a [[variant]]; keep one of them")


def check_values(suite: "Suite") -> None:
    """Check names and values table by table.

    Raises:
        UserError: Names the table, the problem and the fix.
    """
    named = [critic for critic in suite.critics if critic not in (AUTO, NO_CRITIC)]
    for critic in named:
        find_critic(critic)
    for recipe in suite.recipes:
        find_recipe(recipe)
    if named and not any(find_algorithm(algo).uses_critic for algo in suite.algos):
        names = ", ".join(suite.algos)
        raise UserError(f"no algorithm of the suite ({names}) has a critic: remove 'critics'")
    grid = [(GRID, suite.algos, {n: v}) for n, values in suite.grid.items() for v in values]
    for table in (*_tables(suite), *grid):
        _check_table(suite.tasks[0], *table)


def _check_table(task: str, title: str, algos: tuple[str, ...], settings: dict[str, Any]) -> None:
    """Check the settings of a table with each algorithm it applies to."""
    errors = {}
    for algo in algos:
        try:
            Config.of(task, algo=algo, **settings)
        except UserError as error:
            errors[algo] = str(error)
    if not errors:
        return
    algo, message = next(iter(errors.items()))
    if valid := [name for name in algos if name not in errors]:
        is_table = not title.startswith((GRID, "[["))
        place = f"[algo.{valid[0]}]" if is_table else "a separate suite"
        message = f"algorithm {algo!r}: {message} Move settings of {valid[0]} to {place}."
    raise UserError(f"{title}: {message}")


def _tables(suite: "Suite") -> Iterator[Table]:
    """Yield the tables of single-valued settings."""
    yield "[settings]", suite.algos, suite.settings
    for name, own in suite.algo.items():
        yield f"[algo.{name}]", (name,), own
    for name, own in suite.task.items():
        yield f"[task.{name}]", suite.algos, own
    for own in suite.variant:
        settings = {name: value for name, value in own.items() if name != "name"}
        yield f"[[variant]] {own['name']!r}", suite.algos, settings
