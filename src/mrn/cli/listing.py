"""Commands that tell what there is, and how fast it is."""

import runpy
import shlex
import sys
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.markup import escape
from rich.table import Table

from mrn.config import JSON_TABLE, Config, flatten
from mrn.recipes import DEFAULT_RECIPE, RECIPES
from mrn.utils.errors import UserError
from mrn.utils.extras import import_extra
from mrn.utils.tables import console, print_table


def tasks() -> None:
    """List the paper's tasks and further ones, with the engine that simulates them by default."""
    from mrn.envs import EXTRA_TASKS, TASKS, Task, engines_of
    from mrn.envs.tasks import DENSE

    columns = ("environment", "state", "goal", "action", "steps", "epochs", "engine")

    def row(task: Task) -> list[str]:
        spec = task.spec
        sizes = (spec.state_dim, spec.goal_dim, spec.action_dim, spec.horizon, task.epochs)
        return [spec.env_id, *map(str, sizes), engines_of(spec.env_id)[0]]

    papers = Table("task", *columns, title="The paper's tasks")
    for name, task in TASKS.items():
        papers.add_row(name, *row(task))
    further = Table(*columns, title="Further tasks, by their ids")
    for task in EXTRA_TASKS.values():
        further.add_row(*row(task))
    console().print(papers, further)
    print(f"With dense rewards, on EnvPool too: {', '.join(DENSE)}.")
    print("Any other Gymnasium goal environment is a task by its id: `mrn check ENV`.")


def check(
    env: Annotated[str, tyro.conf.arg(metavar="ENV")],
    reward_shift: float = 0.0,
    env_kwargs: Annotated[dict[str, Any], JSON_TABLE] = {},  # noqa: B006 (nobody changes it)
) -> None:
    """Say whether an environment can be trained on, and what would have to be mended.

    Args:
        env: A Gymnasium id, `package.module:Id-v0` imports the module first; or a listed task.
        reward_shift: Added to its rewards, which must then lie in [-1, 0].
        env_kwargs: What its constructor is given, for example '{"size": 3}'.
    """
    from mrn.envs.checks import check_env

    config = Config(env, recipe=DEFAULT_RECIPE, reward_shift=reward_shift, env_kwargs=env_kwargs)
    findings = check_env(env, reward_shift, env_kwargs)
    print_table(
        (
            ("check", "status", "found", "fix"),
            [(each.what, each.verdict, each.found, each.remedy) for each in findings],
        )
    )
    if failed := [each.what for each in findings if each.verdict == "error"]:
        raise UserError(f"{env} cannot be used for training; failed checks: {', '.join(failed)}")
    print(f"Ready to train: mrn train {shlex.join(config.arguments())}")


def critics() -> None:
    """List the critic architectures, with their sizes on FetchPush."""
    from mrn.critics import CRITICS, make_critic
    from mrn.critics.base import count_parameters

    table = Table("critic", "Q(s, a, g)", "quasimetric", "parameters")
    for name, architecture in CRITICS.items():
        critic = make_critic(name, state_dim=25, action_dim=4, goal_dim=3)
        guarantee = "yes" if critic.is_quasimetric else "no"
        table.add_row(
            name, escape(architecture.formula), guarantee, f"{count_parameters(critic):,}"
        )
    console().print(table)


def agents() -> None:
    """List the agents, with the settings that each has of its own."""
    from mrn.algorithms import ALGORITHMS, AlgorithmSettings

    shared = {item.name for item in fields(AlgorithmSettings)}
    table = Table("agent", "what it is", "critic", "settings of its own")
    for name, algorithm in ALGORITHMS.items():
        own = [item.name for item in fields(algorithm.Settings) if item.name not in shared]
        what = (algorithm.__doc__ or "").partition("\n")[0]
        table.add_row(name, what, "any" if algorithm.uses_critic else "none", ", ".join(own))
    console().print(table)


def recipes() -> None:
    """List the recipes, with the settings in which they differ from each other."""
    settings = {name: flatten(Config("any task", recipe=name).to_dict()) for name in RECIPES}
    table = Table("setting", *RECIPES)
    for setting in sorted({key for own in RECIPES.values() for key in own}):
        table.add_row(setting, *(str(own[setting]) for own in settings.values()))
    console().print(table)


def zoo() -> None:
    """List the trained policies that come with the package, for `mrn eval zoo:NAME` and others."""
    from mrn.zoo import table

    print_table(table())


def bench() -> None:
    """Measure speed beside Stable-Baselines3, bare EnvPool and bare matrix products (5 minutes).

    What it finds goes into the clone it belongs to: benchmarks/results and docs/performance.md.
    """
    root = Path(__file__).parents[3]
    if not (root / "benchmarks" / "__main__.py").exists():
        raise UserError("the benchmarks are part of the repository: run `make bench` in a clone")
    import_extra("stable_baselines3", "bench")
    sys.path.insert(0, str(root))
    runpy.run_module("benchmarks", run_name="__main__")
