"""What is put around each of a vector's Gymnasium environments."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym

from mrn.envs.custom import make_env
from mrn.envs.tasks import TaskSpec
from mrn.utils.plugins import describe_error
from mrn.utils.signals import set_parent_death_signal


class FreezeWhenDone(gym.Wrapper[Any, Any, Any, Any]):
    """An environment that does nothing from the end of an episode until it is seeded anew.

    A vector of environments has one clock: one whose episode is over is stepped on until all are,
    and the vector begins another episode in it by a reset without a seed. Nobody reads that
    episode, so it is not played: the last answer is given again.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        """Take an environment, which is closed with this."""
        super().__init__(env)
        self.last: tuple[Any, ...] | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode; without a seed, go on resting."""
        if self.last is not None and seed is None:
            return self.last[0], {}
        self.last = None
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        """Take an action; at rest, say again what was said last, but for the end."""
        if self.last is not None:
            observation, reward, _, _, info = self.last
            return observation, reward, False, False, info
        answer = super().step(action)
        if answer[2] or answer[3]:  # terminated or truncated
            self.last = answer
        return answer


class AnnotateErrors(gym.Wrapper[Any, Any, Any, Any]):
    """Says where an error happened before it leaves the process, and its traceback, behind."""

    def reset(self, **options: Any) -> Any:
        """Begin an episode."""
        with _annotate_errors():
            return super().reset(**options)

    def step(self, action: Any) -> Any:
        """Take an action."""
        with _annotate_errors():
            return super().step(action)


@contextmanager
def _annotate_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise RuntimeError(describe_error(error)) from None


def make_frozen_env(task: TaskSpec) -> gym.Env[Any, Any]:
    """Make one of a vector's environments."""
    return FreezeWhenDone(make_env(task.env_id, task.env_kwargs))


def make_worker_env(task: TaskSpec, parent: int) -> gym.Env[Any, Any]:
    """Make an environment in a worker process, which lives exactly as long as the training.

    Gymnasium makes one in the process of the training too, to look at it: that one stays as it is.
    """
    if os.getpid() != parent:
        # Ctrl-C in a terminal reaches every process, and so may SIGTERM from whoever ends a job;
        # the training decides when its workers end.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # Not SIG_IGN: a simulator that the environment starts would inherit it.
        signal.signal(signal.SIGTERM, lambda *_: None)
        set_parent_death_signal(signal.SIGKILL)
    return AnnotateErrors(make_frozen_env(task))
