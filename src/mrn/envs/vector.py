"""Many environments stepped as one: EnvPool's thread pool, or Gymnasium's vector environments.

Both speak the same small language, `GoalVectorEnv`. An episode always begins with an explicit
`reset`, so the dummy transition of next-step autoreset is never seen by the caller.
"""

import multiprocessing
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from mrn.envs.tasks import TASKS, TaskShape
from mrn.errors import RunError, UserError, look_up
from mrn.own import describe
from mrn.seeding import derive_seed
from mrn.signals import end_with_parent


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

    engine: str
    """What simulates them."""

    def __init__(self, task: TaskShape, num_envs: int) -> None:
        """Say what the environments are, and how many."""
        self.task, self.num_envs = task, num_envs
        self.seed, self.episode = 0, -1  # of the episode that was begun last

    def reset(self, seed: int | None = None, episode: int = 0) -> Observation:
        """Begin an episode everywhere: that of a number since a seed, or else the next one.

        Seed and number decide all that is random in it, whatever was done before: a run that was
        interrupted goes on with the episodes it would have had.
        """
        if seed is None:
            seed, episode = self.seed, self.episode + 1
        observation = self._reset(seed, episode)
        self.seed, self.episode = seed, episode
        return observation

    @abstractmethod
    def _reset(self, seed: int, episode: int) -> Observation:
        """Begin the episode of that number since the seed."""

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

    engine = "envpool"

    def __init__(self, task: TaskShape, num_envs: int, threads: int) -> None:
        """Environments are created by the first reset: EnvPool takes its seed at creation only."""
        super().__init__(task, num_envs)
        self.threads = min(threads, num_envs)
        self.pool: Any = None

    def _reset(self, seed: int, episode: int) -> Observation:
        """Begin an episode; for another than the next one, the environments are made anew.

        Steps draw no random numbers in these environments, so that episodes can be skipped by
        resets alone.
        """
        if self.pool is None or (seed, episode) != (self.seed, self.episode + 1):
            import envpool

            self.close()
            self.pool = envpool.make_gymnasium(
                self.task.env_id,
                num_envs=self.num_envs,
                num_threads=self.threads,
                seed=seed % 2**31,
            )
            for _ in range(episode):
                self.pool.reset()
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

    engine = "gymnasium"

    def __init__(
        self, task: TaskShape, num_envs: int, workers: bool, timeout: float = 60.0
    ) -> None:
        """Make the environments.

        Args:
            task: What they are.
            num_envs: How many.
            workers: Whether each runs in a process of its own.
            timeout: Seconds that such a process may take for one answer.
        """
        import gymnasium as gym

        from mrn.envs.custom import make_env

        super().__init__(task, num_envs)
        self.envs: Any
        if workers:
            parent = os.getpid()
            makers = [lambda: make_worker_env(task, parent)] * num_envs
            self.envs = gym.vector.AsyncVectorEnv(makers)
            self._wait = {"timeout": timeout}
        else:
            makers = [lambda: make_env(task.env_id, task.env_kwargs)] * num_envs
            self.envs = gym.vector.SyncVectorEnv(makers)
            self._wait = {}
        self._broken = False

    def _reset(self, seed: int, episode: int) -> Observation:
        with self._reporting("reset"):
            seed = derive_seed(seed, "episode", episode)
            if self._wait:
                self.envs.reset_async(seed=seed)
                return _observation(self.envs.reset_wait(**self._wait)[0])
            return _observation(self.envs.reset(seed=seed)[0])

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
            raise RunError(f"not a finite number in the reward (environment {env}): {reward[env]}")
        success = success_of(info)
        if success is None:  # then the reward tells
            success = reward + self.task.reward_shift >= 0
        return Step(_observation(observation), terminated, truncated, np.asarray(success, bool))

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
                "seconds; mend it, or raise --worker-timeout"
            ) from None
        except (EOFError, ConnectionError, BrokenPipeError) as error:
            self._broken = True
            raise RunError(f"a worker process of {self.task.name} died during a {what}") from error
        except Exception as error:
            self._broken = True
            # A worker process has said the place already: here the traceback is Gymnasium's.
            text = str(error) if self._wait else describe(error)
            raise RunError(
                f"an environment of {self.task.name} failed in a {what}: {text}"
            ) from error

    def close(self) -> None:
        """Close every environment; worker processes that may not answer are ended."""
        if self._wait and self._broken:
            for process, pipe in zip(self.envs.processes, self.envs.parent_pipes, strict=True):
                process.kill()
                process.join()
                if pipe is not None:
                    pipe.close()
            self.envs.closed = True
        else:
            self.envs.close()


def make_worker_env(task: TaskShape, parent: int) -> Any:
    """Make an environment in a worker process, which lives exactly as long as the training.

    Gymnasium makes one in the process of the training too, to look at it: that one stays as it is.
    """
    import gymnasium as gym

    from mrn.envs.custom import make_env

    class Located(gym.Wrapper[Any, Any, Any, Any]):
        """Says where an error happened before it leaves the process, and its traceback, behind."""

        def reset(self, **options: Any) -> Any:
            with _located():
                return super().reset(**options)

        def step(self, action: Any) -> Any:
            with _located():
                return super().step(action)

    if os.getpid() != parent:
        # Ctrl-C in a terminal reaches every process; the training decides when its workers end.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        end_with_parent(signal.SIGKILL)
    return Located(make_env(task.env_id, task.env_kwargs))


@contextmanager
def _located() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise RuntimeError(describe(error)) from None


ENGINES = ("auto", "envpool", "gymnasium")


def make_envs(
    task: TaskShape,
    num_envs: int,
    engine: str = "auto",
    threads: int = 1,
    workers: bool = False,
    worker_timeout: float = 60.0,
) -> GoalVectorEnv:
    """Make N environments of a task on an engine.

    Raises:
        UserError: There is no such engine, or it does not have the task.
    """
    look_up("engine", engine, dict.fromkeys(ENGINES))
    if engine == "auto":
        engine = "envpool" if task.name in TASKS else "gymnasium"
    if engine == "gymnasium":
        return GymnasiumEnv(task, num_envs, workers, worker_timeout)
    if task.name not in TASKS:
        raise UserError(
            f"engine 'envpool' does not have {task.name!r}, only the paper's tasks (`mrn tasks`); "
            "use engine 'gymnasium' or 'auto'"
        )
    return EnvPoolEnv(task, num_envs, threads)


def success_of(info: Mapping[str, Any]) -> Any:
    """Whether a step was at the goal, as Gymnasium environments tell it; None where they do not.

    Gymnasium-Robotics calls it is_success, its mazes success.
    """
    return info.get("is_success", info.get("success"))


def _observation(arrays: dict[str, np.ndarray]) -> Observation:
    return Observation(arrays["observation"], arrays["achieved_goal"], arrays["desired_goal"])
