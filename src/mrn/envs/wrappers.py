"""Wrappers around each environment of a Gymnasium vector environment."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import gymnasium as gym
from gymnasium.vector.async_vector_env import _async_worker

from mrn.envs.custom import make_env
from mrn.envs.tasks import TaskSpec
from mrn.utils.plugins import describe_error
from mrn.utils.signals import STOP_SIGNALS, set_parent_death_signal


class FreezeWhenDone(gym.Wrapper[Any, Any, Any, Any]):
    """Wrapper that stops simulating after the end of an episode until the next seeded reset.

    A vector environment steps all its environments in lockstep. It resets a finished one without
    a seed and keeps stepping it until every episode is over. Those steps are never stored, so
    this wrapper repeats the last step instead of simulating them.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        """Wrap an environment, and close it together with the wrapper."""
        super().__init__(env)
        self.last: tuple[Any, ...] | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Start an episode; while frozen, a reset without a seed has no effect."""
        if self.last is not None and seed is None:
            return self.last[0], {}
        self.last = None
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        """Take an action; while frozen, repeat the last step without its end-of-episode flags."""
        if self.last is not None:
            observation, reward, _, _, info = self.last
            return observation, reward, False, False, info
        result = super().step(action)
        if result[2] or result[3]:  # terminated or truncated
            self.last = result
        return result


class AnnotateErrors(gym.Wrapper[Any, Any, Any, Any]):
    """Wrapper that adds the location to error messages, since worker processes lose tracebacks."""

    def reset(self, **options: Any) -> Any:
        """Start an episode."""
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
    """Create one environment that freezes at the end of its episode."""
    return FreezeWhenDone(make_env(task.env_id, task.env_kwargs))


def run_worker(*arguments: Any) -> None:
    """Run the loop of Gymnasium's worker processes; end it silently once the parent is killed.

    Its pipe is closed before the signal below arrives, so the worker may print a traceback first.
    """
    with suppress(BrokenPipeError):
        _async_worker(*arguments)


def make_worker_env(task: TaskSpec, parent: int) -> gym.Env[Any, Any]:
    """Create an environment in a worker process whose lifetime is tied to the training process.

    Gymnasium also creates one in the training process, to read its spaces. That process keeps its
    signal handlers.
    """
    if os.getpid() != parent:
        # A terminal sends Ctrl-C and SIGHUP to every process, and a job scheduler may send any
        # signal to all. The training process decides when its workers stop.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in STOP_SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                # Not SIG_IGN: a simulator started by the environment would inherit it.
                signal.signal(number, lambda *_: None)
        set_parent_death_signal(signal.SIGKILL)
    return AnnotateErrors(make_frozen_env(task))
