"""Suites: sets of runs to compare, built in or read from TOML files."""

import functools
import itertools
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

from mrn.algorithms import AUTO, find_algorithm
from mrn.config import Config
from mrn.envs import TASKS, Task, find_task
from mrn.recipes import PAPER
from mrn.sweeps.suite_checks import check_names, check_structure, check_top_level, check_values
from mrn.training.schedule import resolve_epochs
from mrn.utils.errors import UserError, unknown_name
from mrn.utils.files import read_limited
from mrn.utils.naming import NO_CRITIC, safe_name
from mrn.utils.renames import upgrade_suite
from mrn.utils.validation import Seed, Validated, from_dict

MAX_RUNS = 100_000
"""Maximum number of runs of a suite."""
SEEDS = (100, 200, 300, 400, 500)


@dataclass(frozen=True)
class Suite(Validated):
    """Cartesian product of tasks, algorithms, recipes, critics, variants, grid and seeds."""

    tasks: tuple[str, ...]
    """Names listed by `mrn tasks`, or Gymnasium ids."""
    critics: tuple[str, ...] = (AUTO,)
    """Names listed by `mrn critics`; by default `mrn`. Algorithms without a critic run once."""
    algos: tuple[str, ...] = ("ddpg",)
    """Names listed by `mrn algos`."""
    recipes: tuple[str, ...] = (PAPER,)
    """Names listed by `mrn recipes`. A recipe provides the settings left out here."""
    seeds: tuple[Seed, ...] = SEEDS
    """One run per seed."""
    folder: str = ""
    """Subfolder of the runs folder; by default the suite's name."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Any other settings of `mrn train`, for example `epochs` or `batch_size`."""
    algo: dict[str, Any] = field(default_factory=dict)
    """Settings per algorithm; they override `settings`."""
    task: dict[str, Any] = field(default_factory=dict)
    """Settings per task; they override those of `algo`."""
    variant: tuple[dict[str, Any], ...] = ()
    """Named sets of settings to compare, for example an ablation. Each is a separate method; the
    name `""` is the baseline, which changes nothing."""
    grid: dict[str, Any] = field(default_factory=dict)
    """Lists of values to compare. Every combination is a separate method."""

    def __post_init__(self) -> None:
        """Validate everything that does not require looking up algorithms and tasks."""
        super().__post_init__()
        check_structure(self)
        check_names(self)

    def configs(self) -> list[Config]:
        """Return the configuration of each run, ordered by seed.

        Seeds come first so that an interrupted sweep has results for all methods.

        Raises:
            UserError: A name is unknown, a setting is out of range, or a run occurs twice.
        """
        check_values(self)
        lists: tuple[Sequence[Any], ...] = (self.seeds, self.tasks, self.recipes, self.pairs)
        count = prod(map(len, (*lists, self.variant or ({},), *self.grid.values())))
        if count > MAX_RUNS:
            raise UserError(f"the suite has {count:,} runs; at most {MAX_RUNS:,} are allowed")
        combinations = [
            dict(zip(self.grid, values, strict=True))
            for values in itertools.product(*self.grid.values())
        ]
        variants = self.variant or ({},)
        configs = []
        seen: set[Path] = set()
        for each in itertools.product(*lists, variants, combinations):
            config = self._config(*each)
            configs.append(resolve_epochs(config, task_of(config)))
            if config.folder in seen:
                raise UserError(f"run {config.folder} occurs twice")
            seen.add(config.folder)
        return configs

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Pairs of algorithm and critic; algorithms without a critic are paired with `none`."""
        others = tuple(critic for critic in self.critics if critic != NO_CRITIC) or self.critics
        fitting = {a: others if find_algorithm(a).uses_critic else (NO_CRITIC,) for a in self.algos}
        return [(algo, critic) for algo in self.algos for critic in fitting[algo]]

    def _config(
        self,
        seed: int,
        task: str,
        recipe: str,
        pair: tuple[str, str],
        variant: dict[str, Any],
        combination: dict[str, Any],
    ) -> Config:
        algo, critic = pair
        settings = self.settings | self.algo.get(algo, {}) | self.task.get(task, {}) | variant
        name = settings.pop("name", "") or settings.get("variant", "")
        labels = [name, *(_grid_label(*item) for item in combination.items())]
        settings |= combination | {"variant": "+".join(filter(None, labels))}
        return Config.of(task, critic=critic, algo=algo, recipe=recipe, seed=seed, **settings)


def task_of(config: Config) -> Task:
    """Return the task of a run. Cached, because a custom environment must be created for it."""
    return _find_task(
        config.task, config.reward_shift, json.dumps(config.env_kwargs, sort_keys=True)
    )


@functools.cache
def _find_task(task: str, reward_shift: float, env_kwargs: str) -> Task:
    return find_task(task, reward_shift, json.loads(env_kwargs))


def _grid_label(name: str, value: Any) -> str:
    """Return a setting as part of a method's name."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return safe_name(f"{name}={text}")


PAPER_CRITICS = ("mrn", "monolithic", "bvn", "dn", "wn", "pqe")
ABLATIONS = ("mrn", "mrn-sym", "mrn-asym", "mrn-sag")
FETCH = tuple(name for name in TASKS if name.startswith("Fetch"))

# Suites that differ only in their selection of runs share a folder, and so the runs.
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
    """Return a built-in suite by name, or read one from a TOML file.

    Raises:
        UserError: The suite or file does not exist, or the file is not a valid suite.
    """
    if name in SUITES:
        suite, title = SUITES[name], name
    elif Path(name).suffix == ".toml":
        suite, title = _read_suite(Path(name)), Path(name).stem
    else:
        raise UserError(
            f"{unknown_name('suite', name, list(SUITES))} Alternatively, pass a .toml file."
        )
    return replace(suite, folder=suite.folder or title)


def _read_suite(path: Path) -> Suite:
    try:
        data = upgrade_suite(tomllib.loads(read_limited(path).decode()))
    except (ValueError, RecursionError) as error:  # a huge number, or deep nesting
        raise UserError(f"{path} is not valid TOML: {error}") from None
    try:
        check_top_level(data, Suite)
        suite: Suite = from_dict(Suite, data, str(path))
        suite.configs()
    except UserError as error:
        prefix = f"{path}: "
        raise UserError(prefix + str(error).removeprefix(prefix)) from None
    return suite
