"""Many environments stepped as one: EnvPool's thread pool, or Gymnasium's vector environments.

Both speak the same small language, `GoalVectorEnv`. An episode always begins with an explicit
`reset`, so the dummy transition of next-step autoreset is never seen by the caller.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from mrn.envs.tasks import TASKS, TaskShape
from mrn.errors import UserError, look_up


class Observation(NamedTuple):
    """What N environments show: arrays of shape (N, ...)."""

    state: np.ndarray
    achieved: np.ndarray
    goal: np.ndarray


class Step(NamedTuple):
    """What N environments answer to an action."""

    observation: Observation
    terminated: np.ndarray
    truncated: np.ndarray
    success: np.ndarray


class GoalVectorEnv(ABC):
    """N goal environments, which take actions in [-1, 1] whatever their own bounds are."""

    def __init__(self, task: TaskShape, num_envs: int) -> None:
        """Say what the environments are, and how many."""
        self.task, self.num_envs = task, num_envs

    @abstractmethod
    def reset(self, seed: int | None = None) -> Observation:
        """Begin an episode everywhere; a seed decides all that is random from here on."""

    def step(self, action: np.ndarray) -> Step:
        """Take one action of shape (N, action), in [-1, 1], in each environment."""
        return self._step(self.task.to_bounds(action))

    @abstractmethod
    def _step(self, action: np.ndarray) -> Step:
        """Take one action in the environments' own units."""

    @abstractmethod
    def close(self) -> None:
        """Free the environments."""

    def __enter__(self) -> "GoalVectorEnv":
        """Close on leaving the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the environments."""
        self.close()


class EnvPoolEnv(GoalVectorEnv):
    """The paper's tasks in C++ on a thread pool; the same bytes for any number of threads."""

    def __init__(self, task: TaskShape, num_envs: int, threads: int) -> None:
        """Environments are created by the first reset: EnvPool takes its seed at creation only."""
        super().__init__(task, num_envs)
        self.threads = min(threads, num_envs)
        self.pool: Any = None

    def reset(self, seed: int | None = None) -> Observation:
        """Begin an episode everywhere; a seed makes the environments anew."""
        if seed is not None:
            import envpool

            self.close()
            self.pool = envpool.make_gymnasium(
                self.task.env_id,
                num_envs=self.num_envs,
                num_threads=self.threads,
                seed=seed % 2**31,
            )
        return _observation(self.pool.reset()[0])

    def _step(self, action: np.ndarray) -> Step:
        observation, _, terminated, truncated, info = self.pool.step(action)
        return Step(_observation(observation), terminated, truncated, info["is_success"] > 0)

    def close(self) -> None:
        """Stop the pool's threads."""
        if self.pool is not None:
            self.pool.close()
            self.pool = None


class GymnasiumEnv(GoalVectorEnv):
    """Any Gymnasium goal environment, in this process or in worker processes."""

    def __init__(self, task: TaskShape, num_envs: int, workers: bool) -> None:
        """Make the environments."""
        import gymnasium as gym

        from mrn.envs.custom import make_env

        super().__init__(task, num_envs)
        vector = gym.vector.AsyncVectorEnv if workers else gym.vector.SyncVectorEnv
        self.envs = vector([lambda: make_env(task.env_id)] * num_envs)

    def reset(self, seed: int | None = None) -> Observation:
        """Begin an episode everywhere."""
        return _observation(self.envs.reset(seed=seed)[0])

    def _step(self, action: np.ndarray) -> Step:
        observation, reward, terminated, truncated, info = self.envs.step(action)
        # Gymnasium-Robotics says is_success (its mazes: success); else the reward tells.
        success = info.get("is_success", info.get("success"))
        if success is None:
            success = reward + self.task.reward_shift >= 0
        return Step(_observation(observation), terminated, truncated, np.asarray(success, bool))

    def close(self) -> None:
        """Close every environment."""
        self.envs.close()


ENGINES = ("auto", "envpool", "gymnasium")


def make_envs(
    task: TaskShape, num_envs: int, engine: str = "auto", threads: int = 1, workers: bool = False
) -> GoalVectorEnv:
    """Make N environments of a task on an engine.

    Raises:
        UserError: There is no such engine, or it does not have the task.
    """
    look_up("engine", engine, dict.fromkeys(ENGINES))
    if engine == "auto":
        engine = "envpool" if task.name in TASKS else "gymnasium"
    if engine == "gymnasium":
        return GymnasiumEnv(task, num_envs, workers)
    if task.name not in TASKS:
        raise UserError(
            f"engine 'envpool' does not have {task.name!r}, only the paper's tasks (`mrn tasks`); "
            "use engine 'gymnasium' or 'auto'"
        )
    return EnvPoolEnv(task, num_envs, threads)


def _observation(arrays: dict[str, np.ndarray]) -> Observation:
    return Observation(arrays["observation"], arrays["achieved_goal"], arrays["desired_goal"])
