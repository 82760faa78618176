"""Selection of the engine that simulates a task."""

import warnings
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
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


def choose_engine(task: TaskSpec, engine: str = "auto") -> str:
    """Return the engine that simulates a task; `auto` is the task's default if it is installed.

    Raises:
        UserError: The engine is unknown, does not support the task, or is not installed.
    """
    lookup("engine", engine, dict.fromkeys(ENGINES))
    supported = engines_of(task.env_id, task.env_kwargs)
    if engine not in ("auto", *supported):
        suffix = " with env_kwargs" if task.env_kwargs else ""
        raise UserError(
            f"engine {engine!r} does not support {task.name!r}{suffix}, only the tasks that "
            "`mrn tasks` lists; use engine 'gymnasium' or 'auto'"
        )
    chosen = supported[0] if engine == "auto" else engine
    if chosen == "envpool" and find_spec("envpool") is None:
        if engine == "envpool":
            raise UserError(
                "engine 'envpool' is not installed: pip install envpool (some platforms have "
                "no wheel), or use engine 'gymnasium'"
            )
        _warn_without_envpool()
        return "gymnasium"
    return chosen


@cache  # one warning per process: training and evaluation create environments separately
def _warn_without_envpool() -> None:
    warnings.warn(
        "EnvPool is not installed: tasks run on Gymnasium-Robotics, which is slower and draws "
        "different episodes for the same seed. If it has a wheel for this platform: pip install "
        "envpool",
        stacklevel=4,
    )


def make_envs(
    task: TaskSpec,
    num_envs: int,
    engine: str = "auto",
    threads: int = 1,
    async_envs: bool = False,
    env_timeout: float | None = None,
    first: int = 0,
) -> GoalVectorEnv:
    """Create N environments of a task on an engine.

    EnvPool creates and checks its environments at the first reset.

    Args:
        task: The task.
        num_envs: Number of environments.
        engine: `envpool`, `gymnasium`, or `auto` for the task's default if it is installed.
        threads: Number of EnvPool threads.
        async_envs: Run each Gymnasium environment in a worker process.
        env_timeout: Seconds to wait for a Gymnasium environment to start, and for a worker process
            to respond; None to wait forever.
        first: Index of the first environment among all ranks.

    Raises:
        UserError: The engine is unknown, not installed or does not support the task, or the
            environment's sizes do not match the task.
    """
    if choose_engine(task, engine) == "envpool":
        if async_envs:
            warnings.warn(
                f"async_envs has no effect for {task.name!r}: EnvPool runs its environments in "
                "threads; remove async_envs, or use engine 'gymnasium'",
                stacklevel=2,
            )
        return EnvPoolEnv(task, num_envs, threads, first)
    return GymnasiumEnv(task, num_envs, async_envs, env_timeout, first)
