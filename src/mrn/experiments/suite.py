"""What a suite is: a few lists and tables, whose combinations are its runs."""

import functools
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mrn.agents import AUTO, find_agent
from mrn.checked import Checked, Seed
from mrn.config import Config
from mrn.critics import find_critic
from mrn.envs import Task, find_task
from mrn.errors import UserError, unknown
from mrn.naming import NO_CRITIC, safe_name
from mrn.recipes import PAPER, find_recipe

SEEDS = (100, 200, 300, 400, 500)

LISTS = {
    "task": "tasks",
    "critic": "critics",
    "agent": "agents",
    "recipe": "recipes",
    "seed": "seeds",
}
"""Settings of a run that a suite has a list of."""


@dataclass(frozen=True)
class Suite(Checked):
    """Every combination of tasks, agents, recipes, critics, settings of the grid, and seeds."""

    tasks: tuple[str, ...]
    """Names of `mrn tasks`, or Gymnasium ids."""
    critics: tuple[str, ...] = (AUTO,)
    """Names of `mrn critics`; by default mrn. An agent that learns without one is there once."""
    agents: tuple[str, ...] = ("ddpg",)
    """Names of `mrn agents`."""
    recipes: tuple[str, ...] = (PAPER,)
    """Names of `mrn recipes`: where settings that are not given come from."""
    seeds: tuple[Seed, ...] = SEEDS
    """One run for each."""
    folder: str = ""
    """Of its runs, below the folder of all runs; by default the suite's name."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Any other setting of `mrn train`, for example `epochs` or `batch_size`."""
    agent: dict[str, Any] = field(default_factory=dict)
    """By an agent's name, settings for it alone; they come before those of all."""
    task: dict[str, Any] = field(default_factory=dict)
    """By a task's name, settings for it alone; they come before those of an agent."""
    grid: dict[str, Any] = field(default_factory=dict)
    """Settings to compare, a list of values for each. Every combination is a method of its own."""

    def __post_init__(self) -> None:
        """Check what can be checked without knowing the agents and tasks."""
        super().__post_init__()
        for name in LISTS.values():
            if not getattr(self, name):
                raise UserError(f"{name} is empty")
        if Path(self.folder).is_absolute() or ".." in Path(self.folder).parts:
            raise UserError("folder must be below the folder of all runs")
        for kind, known in (("agent", self.agents), ("task", self.tasks)):
            for name, own in getattr(self, kind).items():
                if name not in known:
                    raise UserError(f"[{kind}.{name}]: {unknown(kind, name, list(known))}")
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
        """Each agent with each critic; one that learns without a critic once, with none."""
        others = tuple(critic for critic in self.critics if critic != NO_CRITIC) or self.critics
        fitting = {a: others if find_agent(a).uses_critic else (NO_CRITIC,) for a in self.agents}
        return [(agent, critic) for agent in self.agents for critic in fitting[agent]]

    def _config(
        self, seed: int, task: str, recipe: str, pair: tuple[str, str], choice: dict[str, Any]
    ) -> Config:
        """A run's settings."""
        agent, critic = pair
        settings = self.settings | self.agent.get(agent, {}) | self.task.get(task, {}) | choice
        labels = [settings.get("variant", ""), *(_label(*item) for item in choice.items())]
        settings["variant"] = "+".join(filter(None, labels))
        named = {"critic": critic, "agent": agent, "recipe": recipe, "seed": seed}
        return Config.of(task, **named, **settings)

    def _tables(self) -> Iterator[tuple[str, tuple[str, ...], dict[str, Any]]]:
        """The title of each table, the agents that it is for, and the settings in it."""
        yield "[settings]", self.agents, self.settings
        for name, own in self.agent.items():
            yield f"[agent.{name}]", (name,), own
        for name, own in self.task.items():
            yield f"[task.{name}]", self.agents, own

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
        if asked and not any(find_agent(agent).uses_critic for agent in self.agents):
            names = ", ".join(self.agents)
            raise UserError(f"no agent of the suite ({names}) has a critic: leave 'critics' out")
        grid = [("[grid]", self.agents, {n: v}) for n, vs in self.grid.items() for v in vs]
        for title, agents, settings in (*self._tables(), *grid):
            errors = {}
            for agent in agents:
                try:
                    Config.of(self.tasks[0], agent=agent, **settings)
                except UserError as error:
                    errors[agent] = str(error)
            if not errors:
                continue
            agent, message = next(iter(errors.items()))
            if content := [name for name in agents if name not in errors]:
                place = "a suite of its own" if title == "[grid]" else f"[agent.{content[0]}]"
                message = f"agent {agent!r}: {message} What only {content[0]} has goes to {place}."
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
