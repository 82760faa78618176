"""The engine EnvPool: environments in C++, on a thread pool."""

from typing import Any

import numpy as np

from mrn.envs.tasks import TaskSpec
from mrn.envs.vector import GoalVectorEnv, Observation, Step, as_observation, success_from_info

OPTIONS: dict[str, dict[str, Any]] = {"FetchSlide-v4": {"initial_slide0": 0.05}}
"""By id, what EnvPool has to be told to begin as Gymnasium-Robotics does: left alone, it puts the
robot of FetchSlide 0.4 m further on, and a fifth of the goals beyond the table."""


class EnvPoolEnv(GoalVectorEnv):
    """Environments in C++ on a thread pool; the same bytes for any number of threads."""

    engine = "envpool"

    def __init__(self, task: TaskSpec, num_envs: int, threads: int, first: int = 0) -> None:
        """Environments are created by the first reset: EnvPool takes its seed at creation only."""
        super().__init__(task, num_envs, first)
        self.threads = min(threads, num_envs)
        self.pool: Any = None

    def _reset(self, seed: int, episode: int) -> Observation:
        """Begin an episode; for another than the next one, the environments are made anew.

        Steps draw no random numbers in these environments, and only the limit of steps ends an
        episode: so episodes can be skipped by resets alone.
        """
        if self.pool is None or (seed, episode) != (self.seed, self.episode + 1):
            import envpool

            self.close()
            self.pool = envpool.make_gymnasium(
                self.task.env_id,
                num_envs=self.num_envs,
                num_threads=self.threads,
                seed=(seed + self.first) % 2**31,  # environment i draws from seed + i
                **OPTIONS.get(self.task.env_id, {}),
            )
            self._check_sizes(self.pool.observation_space, self.pool.action_space)
            for _ in range(episode):
                self.pool.reset()
        return as_observation(self.pool.reset()[0])

    def _step(self, action: np.ndarray) -> Step:
        observation, _, terminated, truncated, info = self.pool.step(action)
        return Step(as_observation(observation), terminated, truncated, success_from_info(info) > 0)

    def close(self) -> None:
        """Stop the pool's threads."""
        if self.pool is not None:
            self.pool.close()
            self.pool = None
