"""The engine Gymnasium: its vectors of environments, in this process or in async_envs."""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.util import Finalize
from typing import Any

import numpy as np

from mrn.envs.tasks import TaskSpec
from mrn.envs.vector import GoalVectorEnv, Observation, Step, as_observation, batched_success
from mrn.utils.errors import RunError, UserError
from mrn.utils.plugins import describe_error
from mrn.utils.seeding import derive_seed
from mrn.utils.signals import kill_children_on_error


class GymnasiumEnv(GoalVectorEnv):
    """Any Gymnasium goal environment, in this process or in worker processes.

    One whose episode is over rests until all are: `wrappers.FreezeWhenDone`.
    """

    engine = "gymnasium"

    def __init__(
        self,
        task: TaskSpec,
        num_envs: int,
        async_envs: bool,
        timeout: float = 60.0,
        first: int = 0,
    ) -> None:
        """Make the environments.

        Args:
            task: What they are.
            num_envs: How many.
            async_envs: Whether each runs in a process of its own.
            timeout: Seconds that such a process may take for one answer.
            first: Number of the first one among all of the run's.

        Raises:
            UserError: They cannot be made, or are not what the task says.
        """
        import gymnasium as gym

        from mrn.envs.requirements import goal_space
        from mrn.envs.wrappers import make_frozen_env, make_worker_env

        super().__init__(task, num_envs, first)
        self.envs: Any
        self._broken = False
        if async_envs:
            parent = os.getpid()
            makers = [lambda: make_worker_env(task, parent)] * num_envs
            self._wait = {"timeout": timeout}
            with kill_children_on_error(), self._reporting("start"):
                self.envs = gym.vector.AsyncVectorEnv(makers)
            # If nobody closes them: multiprocessing would send SIGTERM, to which they do not
            # listen, and wait.
            Finalize(self, _kill, (self.envs.processes,), exitpriority=0)
        else:
            makers = [lambda: make_frozen_env(task)] * num_envs
            self.envs = gym.vector.SyncVectorEnv(makers)
            self._wait = {}
        try:
            space = self.envs.single_observation_space
            goal_space(space, f"environment {task.name!r}")
            self._check_sizes(space, self.envs.single_action_space)
        except UserError:
            self.close()
            raise

    def _reset(self, seed: int, episode: int) -> Observation:
        with self._reporting("reset"):
            seed = derive_seed(seed, "episode", episode) + self.first
            if self._wait:
                self.envs.reset_async(seed=seed)
                return as_observation(self.envs.reset_wait(**self._wait)[0])
            return as_observation(self.envs.reset(seed=seed)[0])

    def _step(self, action: np.ndarray) -> Step:
        with self._reporting("step"):
            if self._wait:
                self.envs.step_async(action)
                answer = self.envs.step_wait(**self._wait)
            else:
                answer = self.envs.step(action)
        observation, reward, terminated, truncated, info = answer
        if not np.isfinite(reward).all():
            env = int(np.argwhere(~np.isfinite(reward))[0, 0])
            which = f"environment {self.first + env}"
            raise RunError(f"not a finite number in the reward ({which}): {reward[env]}")
        at_goal = reward + self.task.reward_shift >= 0  # tells where info does not
        success = batched_success(info, at_goal)
        return Step(as_observation(observation), terminated, truncated, success)

    @contextmanager
    def _reporting(self, what: str) -> Iterator[None]:
        """Say what went wrong in an environment, in one sentence instead of a traceback."""
        try:
            yield
        except UserError:
            raise
        except multiprocessing.TimeoutError:
            seconds = self._wait["timeout"]
            self._broken = True
            raise RunError(
                f"an environment of {self.task.name} did not answer a {what} within {seconds:g} "
                "seconds; mend it, or raise --env-timeout"
            ) from None
        except (EOFError, ConnectionError, BrokenPipeError) as error:
            self._broken = True
            raise RunError(f"a worker process of {self.task.name} died during a {what}") from error
        except Exception as error:
            self._broken = True
            # A worker process has said the place already: here the traceback is Gymnasium's.
            text = str(error) if self._wait else describe_error(error)
            raise RunError(
                f"an environment of {self.task.name} failed in a {what}: {text}"
            ) from error

    def close(self) -> None:
        """Close every environment; worker processes that may not answer are ended."""
        if not self._wait:
            self.envs.close()
            return
        if not self._broken:
            try:
                self.envs.close()
                return
            except (EOFError, OSError):  # a worker has died that was not needed since
                pass
        _kill(self.envs.processes)
        for process, pipe in zip(self.envs.processes, self.envs.parent_pipes, strict=True):
            process.join()
            if pipe is not None:
                pipe.close()
        self.envs.closed = True


def _kill(processes: Sequence[multiprocessing.Process]) -> None:
    for process in processes:
        process.kill()
