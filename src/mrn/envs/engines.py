"""Selection of the engine that simulates a task."""

import warnings
from collections.abc import Mapping
from typing import Any

from mrn.envs.envpool_engine import EnvPoolEnv
from mrn.envs.gymnasium_engine import GymnasiumEnv
from mrn.envs.tasks import ENVPOOL_ENV_IDS, TaskSpec
from mrn.envs.vector import GoalVectorEnv
from mrn.utils.errors import UserError, lookup

ENGINES = ("auto", "envpool", "gymnasium")


def engines_of(env_id: str, env_kwargs: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Return the engines that support an environment, the default first."""
    # EnvPool ignores the keyword arguments of the Python constructor.
    native = env_id in ENVPOOL_ENV_IDS and not env_kwargs
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
    """Create N environments of a task on an engine.

    EnvPool creates and checks its environments at the first reset.

    Args:
        task: The task.
        num_envs: Number of environments.
        engine: `envpool`, `gymnasium`, or `auto` for the task's default.
        threads: Number of EnvPool threads.
        async_envs: Run each Gymnasium environment in a worker process.
        env_timeout: Seconds to wait for a worker process.
        first: Index of the first environment among all ranks.

    Raises:
        UserError: The engine is unknown or does not support the task, or the environment's sizes
            do not match the task.
    """
    lookup("engine", engine, dict.fromkeys(ENGINES))
    supported = engines_of(task.env_id, task.env_kwargs)
    if engine not in ("auto", *supported):
        suffix = " with env_kwargs" if task.env_kwargs else ""
        raise UserError(
            f"engine {engine!r} does not support {task.name!r}{suffix}, only the tasks that "
            "`mrn tasks` lists; use engine 'gymnasium' or 'auto'"
        )
    if (supported[0] if engine == "auto" else engine) == "envpool":
        if async_envs:
            warnings.warn(
                f"async_envs has no effect for {task.name!r}: EnvPool runs its environments in "
                "threads; remove async_envs, or use engine 'gymnasium'",
                stacklevel=2,
            )
        return EnvPoolEnv(task, num_envs, threads, first)
    return GymnasiumEnv(task, num_envs, async_envs, env_timeout, first)
