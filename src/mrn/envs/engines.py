"""Which engine simulates a task."""

import warnings
from collections.abc import Mapping
from typing import Any

from mrn.envs.envpool_engine import EnvPoolEnv
from mrn.envs.gymnasium_engine import GymnasiumEnv
from mrn.envs.tasks import ON_ENVPOOL, TaskSpec
from mrn.envs.vector import GoalVectorEnv
from mrn.utils.errors import UserError, lookup

ENGINES = ("auto", "envpool", "gymnasium")


def engines_of(env_id: str, env_kwargs: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """The engines that have an environment, the usual one first."""
    # EnvPool does not know what a constructor in Python is given.
    native = env_id in ON_ENVPOOL and not env_kwargs
    return ("envpool", "gymnasium") if native else ("gymnasium",)


def make_envs(
    task: TaskSpec,
    num_envs: int,
    engine: str = "auto",
    threads: int = 1,
    async_envs: bool = False,
    env_timeout: float = 60.0,
    first: int = 0,
) -> GoalVectorEnv:
    """Make N environments of a task on an engine, `first` being the number of the first one.

    Raises:
        UserError: There is no such engine, it does not have the task, or what it has under that
            name is of other sizes; EnvPool's environments are made, and looked at, by a reset.
    """
    lookup("engine", engine, dict.fromkeys(ENGINES))
    there = engines_of(task.env_id, task.env_kwargs)
    if engine not in ("auto", *there):
        given = " with env_kwargs" if task.env_kwargs else ""
        raise UserError(
            f"engine {engine!r} does not have {task.name!r}{given}, only what `mrn tasks` lists; "
            "use engine 'gymnasium' or 'auto'"
        )
    if (there[0] if engine == "auto" else engine) == "envpool":
        if async_envs:
            warnings.warn(
                f"EnvPool simulates {task.name!r} in its own threads: `async_envs` has no effect; "
                "leave it out, or take engine 'gymnasium'",
                stacklevel=2,
            )
        return EnvPoolEnv(task, num_envs, threads, first)
    return GymnasiumEnv(task, num_envs, async_envs, env_timeout, first)
