"""Many environments stepped as one: the small language that both engines speak.

An episode always begins with an explicit `reset`, so the dummy transition of next-step autoreset
is never seen by the caller.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mrn.envs.tasks import TaskSpec
from mrn.utils.errors import UserError


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

    def __init__(self, task: TaskSpec, num_envs: int, first: int = 0) -> None:
        """Say what the environments are, and how many.

        Args:
            task: What they are.
            num_envs: How many.
            first: Number of the first one among all of the run's, if other processes have more of
                them. The number decides what an environment draws.
        """
        self.task, self.num_envs, self.first = task, num_envs, first
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

    def _check_sizes(self, observations: Any, actions: Any) -> None:
        """Refuse environments whose vectors are longer or shorter than the task's.

        A policy is saved with its task, and an environment may have changed since.

        Args:
            observations: The space of one environment's observations, a Dict.
            actions: The space of its actions.

        Raises:
            UserError: Says what differs, and the remedy.
        """
        task = self.task
        spaces = (
            ("observation", task.state_dim, observations["observation"]),
            ("goal", task.goal_dim, observations["desired_goal"]),
            ("action", task.action_dim, actions),
        )
        changed = [
            f"{name} was of {saved} values, now of {_length(space)}"
            for name, saved, space in spaces
            if space.shape != (saved,)
        ]
        if changed:
            raise UserError(
                f"environment {task.name!r} is not what it was: {'; '.join(changed)}. A policy is "
                "of use in the environment it was trained in: put that back, or train a new one"
            )

    @abstractmethod
    def close(self) -> None:
        """Free the environments."""

    def __enter__(self) -> "GoalVectorEnv":
        """Close on leaving the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the environments."""
        self.close()


def _length(space: Any) -> str:
    """How many values a space's vectors have; the whole shape, if they are none."""
    shape: tuple[int, ...] = space.shape or ()
    return str(shape[0]) if len(shape) == 1 else f"shape {shape}"


SUCCESS = ("is_success", "success")
"""What info calls success, the first that is there counts: Gymnasium-Robotics, and its mazes."""


def success_from_info(info: Mapping[str, Any]) -> Any:
    """Whether a step was at the goal, as Gymnasium environments tell it; None where they do not."""
    return next((info[key] for key in SUCCESS if key in info), None)


def batched_success(info: Mapping[str, Any], otherwise: np.ndarray) -> np.ndarray:
    """The same of N environments, shape (N,): each one's own word, and else what is given.

    A vector of Gymnasium has a key as soon as one environment tells it; a mask says which do.
    """
    success = otherwise
    for key in reversed(SUCCESS):
        if key in info:
            told = np.asarray(info[key], bool)
            if told.size != len(otherwise):  # an array of one value, as some wrap it, is one
                raise UserError(f"info[{key!r}] must be one value, got shape {told.shape[1:]}")
            success = np.where(info[f"_{key}"], told.reshape(-1), success)
    return success


def as_observation(arrays: Mapping[str, np.ndarray]) -> Observation:
    """The three vectors of goal environments, by our names."""
    return Observation(arrays["observation"], arrays["achieved_goal"], arrays["desired_goal"])
