"""Which runs belong together: the paper's experiments, and a user's own in a TOML file."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mrn.checked import Checked, Seed, from_dict
from mrn.config import Config
from mrn.critics import find_critic
from mrn.envs import TASKS, find_task
from mrn.errors import UserError, unknown
from mrn.files import read_bounded

SEEDS = (100, 200, 300, 400, 500)
PAPER_CRITICS = ("mrn", "monolithic", "bvn", "dn", "wn", "pqe")
ABLATIONS = ("mrn", "mrn-sym", "mrn-asym", "mrn-sag")
FETCH = tuple(name for name in TASKS if name.startswith("Fetch"))


@dataclass(frozen=True)
class Suite(Checked):
    """Every combination of tasks, agents, critics and seeds, under the same settings."""

    tasks: tuple[str, ...]
    """Names of `mrn tasks`, or Gymnasium ids."""
    critics: tuple[str, ...] = ("mrn",)
    """Names of `mrn critics`."""
    agents: tuple[str, ...] = ("ddpg",)
    """Learning algorithms."""
    seeds: tuple[Seed, ...] = SEEDS
    """One run for each."""
    folder: str = ""
    """Of its runs, below the folder of all runs; by default the suite's name."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Any other setting of `mrn train`, for example `epochs` or `batch_size`."""

    def configs(self) -> list[Config]:
        """The settings of each run, seed by seed: what is there early says something of all.

        Raises:
            UserError: A name is unknown, a setting is out of range, or a run is there twice.
        """
        configs = []
        for seed in self.seeds:
            for task in self.tasks:
                for agent in self.agents:
                    for critic in self.critics:
                        names = {"critic": critic, "agent": agent, "seed": seed}
                        configs.append(_checked(Config.of(task, **names, **self.settings)))
        folders = [config.folder for config in configs]
        if twice := next((path for path in folders if folders.count(path) > 1), None):
            raise UserError(f"the run {twice} is there twice")
        return configs


def _checked(config: Config) -> Config:
    """The settings with the number of epochs filled in, all names known."""
    find_critic(config.critic)
    epochs = config.epochs or find_task(config.task, config.reward_shift, config.env_kwargs).epochs
    return replace(config, epochs=epochs)


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
        raise UserError(f"{unknown('suite', name, list(SUITES))} Or the name of a .toml file.")
    return replace(suite, folder=suite.folder or title)


def _read(path: Path) -> Suite:
    try:
        data = tomllib.loads(read_bounded(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not TOML: {error}") from None
    suite: Suite = from_dict(Suite, data, str(path))
    for name in ("tasks", "critics", "agents", "seeds"):
        if not getattr(suite, name):
            raise UserError(f"{path}: {name} is empty")
    own = {"tasks": "task", "critics": "critic", "agents": "agent", "seeds": "seed"}
    for list_, name in own.items():
        if name in suite.settings:
            raise UserError(f"{path}: {name} under [settings] belongs to {list_!r} above it")
    if Path(suite.folder).is_absolute() or ".." in Path(suite.folder).parts:
        raise UserError(f"{path}: folder must be below the folder of all runs")
    try:
        suite.configs()
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return suite
