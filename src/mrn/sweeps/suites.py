"""Suites: sets of runs to compare. The paper's, and custom ones in TOML files."""

import functools
import itertools
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from mrn.algorithms import AUTO, find_algorithm
from mrn.config import Config, flatten
from mrn.critics import find_critic
from mrn.envs import TASKS, Task, find_task
from mrn.recipes import PAPER, find_recipe
from mrn.utils.errors import UserError, unknown_name
from mrn.utils.files import read_limited
from mrn.utils.naming import NO_CRITIC, safe_name
from mrn.utils.renames import upgrade_suite
from mrn.utils.validation import Seed, Validated, from_dict

SEEDS = (100, 200, 300, 400, 500)

LISTS = {
    "task": "tasks",
    "critic": "critics",
    "algo": "algos",
    "recipe": "recipes",
    "seed": "seeds",
}
"""Settings of a run that a suite has a list of."""


@dataclass(frozen=True)
class Suite(Validated):
    """Every combination of tasks, algos, recipes, critics, settings of the grid, and seeds."""

    tasks: tuple[str, ...]
    """Names of `mrn tasks`, or Gymnasium ids."""
    critics: tuple[str, ...] = (AUTO,)
    """Names of `mrn critics`; by default mrn. An algo that learns without one is there once."""
    algos: tuple[str, ...] = ("ddpg",)
    """Names of `mrn algos`."""
    recipes: tuple[str, ...] = (PAPER,)
    """Names of `mrn recipes`: where settings that are not given come from."""
    seeds: tuple[Seed, ...] = SEEDS
    """One run for each."""
    folder: str = ""
    """Of its runs, below the folder of all runs; by default the suite's name."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Any other setting of `mrn train`, for example `epochs` or `batch_size`."""
    algo: dict[str, Any] = field(default_factory=dict)
    """By an algo's name, settings for it alone; they come before those of all."""
    task: dict[str, Any] = field(default_factory=dict)
    """By a task's name, settings for it alone; they come before those of an algo."""
    grid: dict[str, Any] = field(default_factory=dict)
    """Settings to compare, a list of values for each. Every combination is a method of its own."""

    def __post_init__(self) -> None:
        """Check what can be checked without knowing the algos and tasks."""
        super().__post_init__()
        for name in LISTS.values():
            if not getattr(self, name):
                raise UserError(f"{name} is empty")
        if Path(self.folder).is_absolute() or ".." in Path(self.folder).parts:
            raise UserError("folder must be below the folder of all runs")
        for kind, known in (("algo", self.algos), ("task", self.tasks)):
            for name, own in getattr(self, kind).items():
                if name not in known:
                    raise UserError(f"[{kind}.{name}]: {unknown_name(kind, name, list(known))}")
                if not isinstance(own, dict):
                    raise UserError(f"[{kind}]: {name} must be a table of its own, [{kind}.{name}]")
        self._check_names()
        for name, values in self.grid.items():
            if not isinstance(values, list) or not values:
                raise UserError(
                    f"[grid]: {name} must be a list of values to compare, for example "
                    f"{name} = [{values if values != [] else '1, 2'}], got {values!r}"
                )

    def configs(self) -> list[Config]:
        """The settings of each run, seed by seed: what is there early says something of all.

        Raises:
            UserError: A name is unknown, a setting is out of range, or a run is there twice.
        """
        self._check_values()
        combinations = [
            dict(zip(self.grid, values, strict=True))
            for values in itertools.product(*self.grid.values())
        ]
        lists = (self.seeds, self.tasks, self.recipes, self.pairs, combinations)
        configs = []
        seen: set[Path] = set()
        for each in itertools.product(*lists):
            config = self._config(*each)
            usual = task_of(
                config
            ).epochs  # also where others are given: an unknown task is refused
            configs.append(replace(config, epochs=config.epochs or usual))
            if config.folder in seen:
                raise UserError(f"the run {config.folder} is there twice")
            seen.add(config.folder)
        return configs

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Each algo with each critic; one that learns without a critic once, with none."""
        others = tuple(critic for critic in self.critics if critic != NO_CRITIC) or self.critics
        fitting = {a: others if find_algorithm(a).uses_critic else (NO_CRITIC,) for a in self.algos}
        return [(algo, critic) for algo in self.algos for critic in fitting[algo]]

    def _config(
        self, seed: int, task: str, recipe: str, pair: tuple[str, str], choice: dict[str, Any]
    ) -> Config:
        """A run's settings."""
        algo, critic = pair
        settings = self.settings | self.algo.get(algo, {}) | self.task.get(task, {}) | choice
        labels = [settings.get("variant", ""), *(_label(*item) for item in choice.items())]
        settings["variant"] = "+".join(filter(None, labels))
        named = {"critic": critic, "algo": algo, "recipe": recipe, "seed": seed}
        return Config.of(task, **named, **settings)

    def _tables(self) -> Iterator[tuple[str, tuple[str, ...], dict[str, Any]]]:
        """The title of each table, the algos that it is for, and the settings in it."""
        yield "[settings]", self.algos, self.settings
        for name, own in self.algo.items():
            yield f"[algo.{name}]", (name,), own
        for name, own in self.task.items():
            yield f"[task.{name}]", self.algos, own

    def _check_names(self) -> None:
        """Refuse settings in a table where they would have no effect, or a confusing one."""
        for title, _, settings in (*self._tables(), ("[grid]", (), self.grid)):
            for name in settings:
                if name in LISTS:
                    raise UserError(f"{title}: {name} belongs to {LISTS[name]!r} above the tables")
                if title == "[grid]" and name == "variant":
                    raise UserError("[grid]: the variants' names are made from the other settings")
                if title != "[grid]" and name in self.grid:
                    raise UserError(f"{title}: {name} is under [grid], too; keep it in one of them")

    def _check_values(self) -> None:
        """Check names and tables one by one, so that an error can say where it is.

        Raises:
            UserError: Names the table, what is wrong in it and the remedy.
        """
        asked = [critic for critic in self.critics if critic not in (AUTO, NO_CRITIC)]
        for critic in asked:
            find_critic(critic)
        for recipe in self.recipes:
            find_recipe(recipe)
        if asked and not any(find_algorithm(algo).uses_critic for algo in self.algos):
            names = ", ".join(self.algos)
            raise UserError(f"no algo of the suite ({names}) has a critic: leave 'critics' out")
        grid = [("[grid]", self.algos, {n: v}) for n, vs in self.grid.items() for v in vs]
        for title, algos, settings in (*self._tables(), *grid):
            errors = {}
            for algo in algos:
                try:
                    Config.of(self.tasks[0], algo=algo, **settings)
                except UserError as error:
                    errors[algo] = str(error)
            if not errors:
                continue
            algo, message = next(iter(errors.items()))
            if content := [name for name in algos if name not in errors]:
                place = "a suite of its own" if title == "[grid]" else f"[algo.{content[0]}]"
                message = f"algo {algo!r}: {message} What only {content[0]} has goes to {place}."
            raise UserError(f"{title}: {message}")


def task_of(config: Config) -> Task:
    """The task of a run, looked at once: an environment of one's own has to be made for that."""
    return _find(config.task, config.reward_shift, json.dumps(config.env_kwargs, sort_keys=True))


@functools.cache
def _find(task: str, reward_shift: float, env_kwargs: str) -> Task:
    return find_task(task, reward_shift, json.loads(env_kwargs))


def _label(name: str, value: Any) -> str:
    """A setting as part of a method's name."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return safe_name(f"{name}={text}")


PAPER_CRITICS = ("mrn", "monolithic", "bvn", "dn", "wn", "pqe")
ABLATIONS = ("mrn", "mrn-sym", "mrn-asym", "mrn-sag")
FETCH = tuple(name for name in TASKS if name.startswith("Fetch"))

# Suites that differ in their choice of runs alone share a folder, and so the runs.
SUITES: Mapping[str, Suite] = {
    "paper-main": Suite(tuple(TASKS), PAPER_CRITICS, folder="paper"),
    "paper-ablation": Suite(tuple(TASKS), ABLATIONS, folder="paper"),
    "paper-ablation-lr": Suite(tuple(TASKS), ABLATIONS, settings={"learning_rate": 2e-3}),
    "fetch": Suite(FETCH, PAPER_CRITICS, folder="paper"),
    "quick": Suite(
        ("FetchReach",), ("mrn", "monolithic"), seeds=(100,), settings={"cycles": 4, "epochs": 5}
    ),
}


def find_suite(name: str) -> Suite:
    """The suite of that name, or in that TOML file.

    Raises:
        UserError: There is neither, or the file is not a suite.
    """
    if name in SUITES:
        suite, title = SUITES[name], name
    elif Path(name).suffix == ".toml":
        suite, title = _read(Path(name)), Path(name).stem
    else:
        raise UserError(f"{unknown_name('suite', name, list(SUITES))} Or the name of a .toml file.")
    return replace(suite, folder=suite.folder or title)


def _read(path: Path) -> Suite:
    try:
        data = upgrade_suite(tomllib.loads(read_limited(path).decode()))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not TOML: {error}") from None
    try:
        _check_top(data)
        suite: Suite = from_dict(Suite, data, str(path))
        suite.configs()
    except UserError as error:
        where = f"{path}: "
        raise UserError(where + str(error).removeprefix(where)) from None
    return suite


def _check_top(data: dict[str, Any]) -> None:
    """Say what to do about the likely mistakes above the tables.

    Raises:
        UserError: One of them was made.
    """
    for name, many in LISTS.items():
        if name in data and not isinstance(data[name], dict):
            raise UserError(f"{name} must be a list named {many!r}: {many} = [...]")
    strange = sorted(set(data) - {item.name for item in fields(Suite)})
    settings = set(flatten(Config("any task").to_dict())) - set(LISTS)
    if strange and strange[0] in settings:
        raise UserError(f"{strange[0]} is a setting of the runs: put it under [settings]")
    if not strange and "tasks" not in data:
        raise UserError('tasks is missing, for example tasks = ["FetchPush"]; mrn tasks lists them')
