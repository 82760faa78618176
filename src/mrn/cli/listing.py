"""Commands that list or check what is available: tasks, critics, algorithms, recipes, zoo."""

import shlex
from dataclasses import fields
from typing import Annotated, Any

import tyro
from rich.markup import escape
from rich.table import Table

from mrn.config import Config, flatten
from mrn.recipes import DEFAULT_RECIPE, FAMILIES, RECIPES, TUNED
from mrn.utils.console import console
from mrn.utils.errors import UserError
from mrn.utils.findings import Finding
from mrn.utils.flags import JSON_TABLE
from mrn.utils.tables import print_table
from mrn.utils.terminal import show


def tasks() -> None:
    """List the available tasks and the engine that simulates each by default."""
    from mrn.envs import EXTRA_TASKS, TASKS, Task, engines_of
    from mrn.envs.tasks import DENSE

    columns = ("environment", "state", "goal", "action", "steps", "epochs", "engine")

    def row(task: Task) -> list[str]:
        spec = task.spec
        sizes = (spec.state_dim, spec.goal_dim, spec.action_dim, spec.horizon, task.epochs)
        return [spec.env_id, *map(str, sizes), engines_of(spec.env_id)[0]]

    paper_tasks = Table("task", *columns, title="Tasks of the paper")
    for name, task in TASKS.items():
        paper_tasks.add_row(name, *row(task))
    extra_tasks = Table(*columns, title="Additional tasks")
    for task in EXTRA_TASKS.values():
        extra_tasks.add_row(*row(task))
    console().print(paper_tasks, extra_tasks)
    show(f"Tasks with dense rewards, also on EnvPool: {', '.join(DENSE)}.")
    show("Any other Gymnasium goal environment works by its id. Check it with `mrn check ENV`.")


def check(
    env: Annotated[str, tyro.conf.arg(metavar="ENV")],
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")] = "",
    reward_shift: float = 0.0,
    env_kwargs: Annotated[dict[str, Any], JSON_TABLE] = {},  # noqa: B006 (never mutated)
) -> None:
    """Check whether an environment or a critic can be used for training, and how to fix it if not.

    Args:
        env: Task name or Gymnasium id; `package.module:Id-v0` imports the module first. `critic` to
            check the critic NAME instead.
        name: Name of the critic to check; `package.module:name` for a custom one.
        reward_shift: Constant added to the rewards. The sum must lie in [-1, 0].
        env_kwargs: Keyword arguments for the environment's constructor, for example '{"size": 3}'.
    """
    if env == "critic":
        _check_critic(name)
        return
    from mrn.envs.checks import check_env

    if name:
        raise UserError(
            f"unexpected argument {name!r}: use `mrn check ENV` or `mrn check critic NAME`"
        )
    config = Config(env, recipe=DEFAULT_RECIPE, reward_shift=reward_shift, env_kwargs=env_kwargs)
    _report_findings(env, check_env(env, reward_shift, env_kwargs))
    show(f"Ready to train: mrn train {shlex.join(config.arguments())}")


def _check_critic(name: str) -> None:
    """Check a critic with the sizes of FetchPush."""
    from mrn.critics import Dims, build_critic
    from mrn.critics.checks import check_critic

    dims = Dims(state=25, action=4, goal=3)
    _report_findings(f"critic {name!r}", check_critic(build_critic(name, dims), dims))
    show(f"Ready to train: mrn train TASK --critic {shlex.quote(name)}")


def _report_findings(what: str, findings: list[Finding]) -> None:
    """Print a table of findings.

    Raises:
        UserError: A check failed.
    """
    print_table(
        (
            ("check", "status", "found", "fix"),
            [(each.what, each.verdict, each.found, each.remedy) for each in findings],
        )
    )
    if failed := [each.what for each in findings if each.verdict == "error"]:
        raise UserError(f"{what} cannot be used for training; failed checks: {', '.join(failed)}")


def critics() -> None:
    """List the critic architectures and their parameter counts on FetchPush."""
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


def algos() -> None:
    """List the learning algorithms and the settings that only some of them have."""
    from mrn.algorithms import ALGORITHMS, AlgorithmSettings
    from mrn.critics import CRITICS

    shared = {item.name for item in fields(AlgorithmSettings)}
    table = Table("algorithm", "description", "critic", "settings")
    for name, algorithm in ALGORITHMS.items():
        own = [item.name for item in fields(algorithm.Settings) if item.name not in shared]
        description = (algorithm.__doc__ or "").partition("\n")[0]
        usable = sum(map(algorithm.can_use, CRITICS))
        critic = {0: "none", len(CRITICS): "any"}.get(usable, "quasimetric")
        table.add_row(name, description, critic, ", ".join(own))
    console().print(table)


def recipes() -> None:
    """List the recipes (named presets) and the settings in which they differ."""
    settings = {name: flatten(Config("any task", recipe=name).to_dict()) for name in RECIPES}
    table = Table("setting", *RECIPES)
    for setting in sorted({key for own in RECIPES.values() for key in own}):
        table.add_row(setting, *(str(own[setting]) for own in settings.values()))
    console().print(table)
    table = Table("task", "algorithm", f"settings of {TUNED}")
    for prefix, algorithms in FAMILIES.items():
        for algo, own in algorithms.items():
            table.add_row(f"{prefix}*", algo, " ".join(f"{k}={v}" for k, v in own.items()))
    console().print(table)


def zoo() -> None:
    """List the pretrained policies, which other commands accept as `zoo:NAME`."""
    from mrn.zoo import table

    print_table(table())
