"""Vectorized goal environments: the interface that both engines implement.

Every episode starts with an explicit `reset`, so callers never see the dummy transition of
next-step autoreset.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from mrn.envs.tasks import TaskSpec
from mrn.utils.errors import UserError


class Observation(NamedTuple):
    """Observations of N environments, arrays of shape (N, ...)."""

    state: np.ndarray
    achieved: np.ndarray
    goal: np.ndarray


class Step(NamedTuple):
    """Results of one step in N environments, arrays of shape (N, ...)."""

    observation: Observation
    terminated: np.ndarray
    truncated: np.ndarray
    success: np.ndarray


class GoalVectorEnv(ABC):
    """N goal environments with actions scaled to [-1, 1]."""

    engine: str
    """Name of the simulation engine."""

    def __init__(self, task: TaskSpec, num_envs: int, first: int = 0) -> None:
        """Store the task and the number of environments.

        Args:
            task: The task.
            num_envs: Number of environments.
            first: Index of the first environment among all ranks. The index determines the random
                numbers that an environment draws.
        """
        self.task, self.num_envs, self.first = task, num_envs, first
        self.seed, self.episode = 0, -1  # of the current episode

    def reset(self, seed: int | None = None, episode: int = 0) -> Observation:
        """Start an episode in every environment.

        The seed and the episode number determine all randomness of an episode, independent of
        earlier episodes. A resumed run therefore sees the episodes of an uninterrupted one.

        Args:
            seed: Seed of the episode sequence; None continues the current one.
            episode: Number of the episode in the sequence; ignored without a seed.
        """
        if seed is None:
            seed, episode = self.seed, self.episode + 1
        observation = self._reset(seed, episode)
        self.seed, self.episode = seed, episode
        return observation

    @abstractmethod
    def _reset(self, seed: int, episode: int) -> Observation:
        """Start an episode, given its seed and its number in the seed's sequence."""

    def step(self, action: np.ndarray) -> Step:
        """Take one action in each environment, shape (N, action), values in [-1, 1]."""
        return self._step(self.task.to_bounds(action))

    @abstractmethod
    def _step(self, action: np.ndarray) -> Step:
        """Take one action within the environments' own bounds."""

    def _check_sizes(self, observations: Any, actions: Any) -> None:
        """Check that the environments' vectors have the task's sizes.

        A policy is saved with its task, and the environment may have changed since.

        Args:
            observations: Observation space of one environment, a Dict.
            actions: Action space of one environment.

        Raises:
            UserError: A size differs.
        """
        task = self.task
        spaces = (
            ("observation", task.state_dim, observations["observation"]),
            ("goal", task.goal_dim, observations["desired_goal"]),
            ("action", task.action_dim, actions),
        )
        changed = [
            f"{name} had {saved} values, now has {_format_size(space)}"
            for name, saved, space in spaces
            if space.shape != (saved,)
        ]
        if changed:
            raise UserError(
                f"environment {task.name!r} has changed: {'; '.join(changed)}. A policy only works "
                "in the environment it was trained in: restore that version, or train a new policy"
            )

    @abstractmethod
    def close(self) -> None:
        """Close the environments."""

    def __enter__(self) -> "GoalVectorEnv":
        """Return the environments, which the end of the block closes."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the environments."""
        self.close()


def _format_size(space: Any) -> str:
    """Return the length of a space's vectors, or the shape if they are not vectors."""
    shape: tuple[int, ...] = space.shape or ()
    return str(shape[0]) if len(shape) == 1 else f"shape {shape}"


SUCCESS_KEYS = ("is_success", "success")
"""Keys of the success flag in info, by priority: most environments, then the mazes."""


def success_from_info(info: Mapping[str, Any]) -> Any:
    """Return the success flag of a step's info, or None if it has none."""
    return next((info[key] for key in SUCCESS_KEYS if key in info), None)


def batched_success(info: Mapping[str, Any], default: np.ndarray) -> np.ndarray:
    """Return the success flags of N environments, shape (N,).

    The info of a Gymnasium vector has a key as soon as one environment reports it, and a mask of
    the environments that do. The others get the default.

    Raises:
        UserError: A success flag is not a single value.
    """
    success = default
    for key in reversed(SUCCESS_KEYS):
        if key in info:
            flags = np.asarray(info[key], bool)
            if flags.size != len(default):  # some wrap the flag in an array of one value
                raise UserError(f"info[{key!r}] must be one value, got shape {flags.shape[1:]}")
            success = np.where(info[f"_{key}"], flags.reshape(-1), success)
    return success


def as_observation(arrays: Mapping[str, np.ndarray]) -> Observation:
    """Convert the dictionary of a goal environment to an `Observation`."""
    return Observation(arrays["observation"], arrays["achieved_goal"], arrays["desired_goal"])
