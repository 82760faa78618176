"""The Gymnasium engine: vector environments in this process or in worker processes."""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from multiprocessing.util import Finalize
from typing import Any

import numpy as np

from mrn.envs.tasks import TaskSpec
from mrn.envs.vector import GoalVectorEnv, Observation, Step, as_observation, batched_success
from mrn.utils.errors import RunError, UserError
from mrn.utils.plugins import describe_error
from mrn.utils.seeding import derive_seed
from mrn.utils.signals import kill_children_on_error, time_limit


def start_limit(seconds: float | None) -> AbstractContextManager[None]:
    """Return the time limit for creating environments; None for no limit."""
    if seconds is None:
        return nullcontext()
    message = f"not finished within {seconds:g} seconds; fix it, or increase env_timeout"
    return time_limit(seconds, message)


class GymnasiumEnv(GoalVectorEnv):
    """Gymnasium goal environments, in this process or in worker processes.

    An environment whose episode is over freezes until all are (`wrappers.FreezeWhenDone`).
    """

    engine = "gymnasium"

    def __init__(
        self,
        task: TaskSpec,
        num_envs: int,
        async_envs: bool,
        timeout: float | None = None,
        first: int = 0,
    ) -> None:
        """Create the environments.

        Args:
            task: The task.
            num_envs: Number of environments.
            async_envs: Run each environment in a worker process.
            timeout: Seconds to wait for an environment to start, and for a worker process to
                respond; None to wait forever.
            first: Index of the first environment among all ranks.

        Raises:
            UserError: The environments cannot be created, or do not match the task.
        """
        import gymnasium as gym

        from mrn.envs.requirements import goal_space
        from mrn.envs.wrappers import make_frozen_env, make_worker_env, run_worker

        super().__init__(task, num_envs, first)
        self.envs: Any
        self._failed = False
        if async_envs:
            parent = os.getpid()
            makers = [lambda: make_worker_env(task, parent)] * num_envs
            self._wait_kwargs = {"timeout": timeout}
            with kill_children_on_error(), self._report_errors("start"), start_limit(timeout):
                self.envs = gym.vector.AsyncVectorEnv(makers, worker=run_worker)
            # At exit, multiprocessing would send SIGTERM to workers that were not closed, which
            # they ignore, and wait for them.
            Finalize(self, _kill, (self.envs.processes,), exitpriority=0)
        else:

            def make() -> Any:
                with start_limit(timeout):
                    return make_frozen_env(task)

            self.envs = gym.vector.SyncVectorEnv([make] * num_envs)
            self._wait_kwargs = {}
        try:
            space = self.envs.single_observation_space
            goal_space(space, f"environment {task.name!r}")
            self._check_sizes(space, self.envs.single_action_space)
        except UserError:
            self.close()
            raise

    def _reset(self, seed: int, episode: int) -> Observation:
        with self._report_errors("reset"):
            seed = derive_seed(seed, "episode", episode) + self.first
            if self._wait_kwargs:
                self.envs.reset_async(seed=seed)
                return as_observation(self.envs.reset_wait(**self._wait_kwargs)[0])
            return as_observation(self.envs.reset(seed=seed)[0])

    def _step(self, action: np.ndarray) -> Step:
        with self._report_errors("step"):
            if self._wait_kwargs:
                self.envs.step_async(action)
                result = self.envs.step_wait(**self._wait_kwargs)
            else:
                result = self.envs.step(action)
        observation, reward, terminated, truncated, info = result
        if not np.isfinite(reward).all():
            env = int(np.argwhere(~np.isfinite(reward))[0, 0])
            index = self.first + env
            raise RunError(
                f"not a finite number in the reward (environment {index}): {reward[env]}"
            )
        at_goal = reward + self.task.reward_shift >= 0  # used if info has no success flag
        success = batched_success(info, at_goal)
        return Step(as_observation(observation), terminated, truncated, success)

    @contextmanager
    def _report_errors(self, operation: str) -> Iterator[None]:
        """Convert an exception in an environment to a one-line `RunError`."""
        try:
            yield
        except UserError:
            raise
        except multiprocessing.TimeoutError:
            seconds = self._wait_kwargs["timeout"]
            self._failed = True
            raise RunError(
                f"an environment of {self.task.name} did not respond to a {operation} within "
                f"{seconds:g} seconds; fix it, or increase env_timeout"
            ) from None
        except (EOFError, ConnectionError, BrokenPipeError) as error:
            self._failed = True
            raise RunError(
                f"a worker process of {self.task.name} died during a {operation}"
            ) from error
        except (Exception, SystemExit) as error:
            self._failed = True
            # A worker's message already has the location; the traceback here is Gymnasium's.
            text = str(error) if self._wait_kwargs else describe_error(error)
            raise RunError(
                f"an environment of {self.task.name} failed in a {operation}: {text}"
            ) from error

    def close(self) -> None:
        """Close all environments; kill worker processes that may no longer respond."""
        if not self._wait_kwargs:
            self.envs.close()
            return
        if not self._failed:
            try:
                self.envs.close()
                return
            except (EOFError, OSError):  # a worker died after its last step
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
