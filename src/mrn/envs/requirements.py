"""What an environment must have to be trained on; `task_of` and `mrn check` both ask here."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from mrn.envs.tasks import MOST
from mrn.utils.errors import UserError
from mrn.utils.plugins import describe_error

KEYS = ("observation", "achieved_goal", "desired_goal")


class UnsupportedEnvError(UserError):
    """An environment that cannot be trained on."""

    def __init__(self, where: str, problem: str, remedy: str) -> None:
        """Say which environment, what is wrong with it and what would mend it."""
        super().__init__(f"{where}: {problem}; {remedy}")
        self.problem, self.remedy = problem, remedy


@contextmanager
def failing(where: str, what: str) -> Iterator[None]:
    """Whatever a user's method raises becomes one sentence that says where."""
    try:
        yield
    except UnsupportedEnvError:
        raise
    except Exception as error:
        problem = f"its {what} failed: {describe_error(error)}"
        raise UnsupportedEnvError(where, problem, "mend it at the line that is named") from error


def goal_space(space: spaces.Space[Any], where: str) -> spaces.Dict:
    """A space of observations that is one of goals: three vectors.

    Raises:
        UnsupportedEnvError: It is another one.
    """
    if not isinstance(space, spaces.Dict) or not set(KEYS) <= set(space):
        raise UnsupportedEnvError(
            where,
            "it is no goal environment: its observations must be a Dict with the keys "
            f"{', '.join(KEYS)}, got {space}",
            "a gymnasium.ObservationWrapper can give them",
        )
    for key in KEYS:
        if not isinstance(space[key], spaces.Box) or len(space[key].shape or ()) != 1:
            raise UnsupportedEnvError(
                where,
                f"{key!r} must be a vector (a Box of one dimension), got {space[key]}",
                "gymnasium.wrappers.FlattenObservation shows how to flatten a space",
            )
    if space["achieved_goal"].shape != space["desired_goal"].shape:
        raise UnsupportedEnvError(
            where,
            f"achieved_goal and desired_goal must have the same shape, got "
            f"{space['achieved_goal'].shape} and {space['desired_goal'].shape}",
            "achieved_goal is where it is now, in the terms of the goal",
        )
    return space


def action_space(env: gym.Env[Any, Any], where: str) -> spaces.Box:
    """The space of actions, a vector with bounds.

    Raises:
        UnsupportedEnvError: Policies cannot act in it.
    """
    action = env.action_space
    needed = f"the action space must be a bounded Box of one dimension, of floats, got {action}"
    if not isinstance(action, spaces.Box):
        raise UnsupportedEnvError(
            where, needed, "actions that are a choice of several are not supported"
        )
    if len(action.shape) != 1:
        raise UnsupportedEnvError(
            where, needed, "a gymnasium.ActionWrapper can take a flat vector instead"
        )
    if action.dtype not in (np.float32, np.float64):
        remedy = "declare it with dtype=np.float32, and let step round where it must"
        raise UnsupportedEnvError(where, needed, remedy)
    if not action.is_bounded():
        raise UnsupportedEnvError(where, needed, "gymnasium.wrappers.RescaleAction gives it bounds")
    return action


def horizon(env: gym.Env[Any, Any], where: str) -> int:
    """Steps in an episode, at most.

    Raises:
        UnsupportedEnvError: There is no limit, or one that no machine can hold.
    """
    steps = env.spec.max_episode_steps if env.spec else None
    if steps is None:
        remedy = "register it with max_episode_steps, or give that as one of its env_kwargs"
        raise UnsupportedEnvError(where, "it has no limit of steps", remedy)
    if steps > MOST:
        remedy = "give a lower max_episode_steps as one of its env_kwargs"
        raise UnsupportedEnvError(where, f"its limit of steps is {steps:,}, above {MOST:,}", remedy)
    return steps


def reward_method(env: gym.Env[Any, Any], where: str) -> Any:
    """The environment's `compute_reward`.

    Raises:
        UnsupportedEnvError: It has none.
    """
    try:
        found = env.get_wrapper_attr("compute_reward")
    except AttributeError:
        found = None
    if not callable(found):
        raise UnsupportedEnvError(
            where,
            "it has no method compute_reward(achieved_goal, desired_goal, info)",
            "add it: hindsight needs it to reward other goals",
        )
    return found
