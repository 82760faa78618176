"""The EnvPool engine: environments in C++ on a thread pool."""

import _thread
import mmap
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from mrn.envs.tasks import TaskSpec
from mrn.envs.vector import GoalVectorEnv, Observation, Step, as_observation, success_from_info
from mrn.utils.errors import RunError

OPTIONS: dict[str, dict[str, Any]] = {"FetchSlide-v4": {"initial_slide0": 0.05}}
"""EnvPool options by id that reproduce the initial states of Gymnasium-Robotics.

By default, EnvPool places the robot of FetchSlide 0.4 m farther forward, which puts a fifth of the
goals beyond the table.
"""

SPARE_THREADS = 4
"""Threads that EnvPool may start besides those that step environments and those that create them,
two for each core."""
POOL_BYTES, ENV_BYTES = 144 * 2**20, 16 * 2**20
"""Memory of a pool and of each environment; all tasks need more."""


class EnvPoolEnv(GoalVectorEnv):
    """Environments on EnvPool's thread pool, bit-identical for any number of threads."""

    engine = "envpool"

    def __init__(self, task: TaskSpec, num_envs: int, threads: int, first: int = 0) -> None:
        """Store the settings; the first reset creates the pool, which takes its seed only then."""
        super().__init__(task, num_envs, first)
        self.threads = min(threads, num_envs)
        self.pool: Any = None

    def _reset(self, seed: int, episode: int) -> Observation:
        """Start an episode; recreate the pool unless it is the one after the current episode.

        Resets alone can skip episodes. Steps draw no random numbers in these environments, and
        only the step limit ends an episode.
        """
        if self.pool is None or (seed, episode) != (self.seed, self.episode + 1):
            import envpool

            is_first = self.pool is None
            self.close()
            try:
                if is_first:  # others reuse its memory
                    self._check_limits()
                self.pool = envpool.make_gymnasium(
                    self.task.env_id,
                    num_envs=self.num_envs,
                    num_threads=self.threads,
                    seed=(seed + self.first) % 2**31,  # environment i draws from seed + i
                    **OPTIONS.get(self.task.env_id, {}),
                )
            except (RuntimeError, MemoryError, OSError) as error:
                text = " ".join(str(getattr(error, "strerror", None) or error).split())
                raise RunError(
                    f"EnvPool cannot start {self.num_envs} environments of {self.task.name} on "
                    f"{self.threads} threads: {text or 'not enough memory'}; lower num_envs or "
                    "threads, or allow more memory and processes (ulimit)"
                ) from error
            self._check_sizes(self.pool.observation_space, self.pool.action_space)
            for _ in range(episode):
                self.pool.reset()
        return as_observation(self.pool.reset()[0])

    def _check_limits(self) -> None:
        """Start threads and map memory for a moment; without them, EnvPool may hang or abort.

        Raises:
            RuntimeError: The system does not allow that many threads.
            OSError: Memory is exhausted.
        """
        creating = 2 * min(self.num_envs, os.cpu_count() or 1)
        gate, before = _thread.allocate_lock(), _running_threads()

        def wait() -> None:
            with gate:
                pass

        with gate:
            for _ in range(self.threads + creating + SPARE_THREADS):
                _thread.start_new_thread(wait, ())
            mmap.mmap(-1, POOL_BYTES + self.num_envs * ENV_BYTES).close()
        deadline = time.monotonic() + 1
        while _running_threads() > before and time.monotonic() < deadline:  # they count until then
            time.sleep(0.001)

    def _step(self, action: np.ndarray) -> Step:
        observation, _, terminated, truncated, info = self.pool.step(action)
        return Step(as_observation(observation), terminated, truncated, success_from_info(info) > 0)

    def close(self) -> None:
        """Stop the threads of the pool."""
        if self.pool is not None:
            self.pool.close()
            self.pool = None


def _running_threads() -> int:
    """Return the number of threads of this process that have not ended yet."""
    tasks = Path("/proc/self/task")  # also those that Python no longer counts
    return len(os.listdir(tasks)) if tasks.is_dir() else _thread._count()
