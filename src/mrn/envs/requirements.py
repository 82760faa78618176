"""What training requires of an environment, shared by `make_custom_task` and `mrn check`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from mrn.envs.tasks import MAX_SIZE
from mrn.utils.errors import UserError
from mrn.utils.plugins import describe_error

KEYS = ("observation", "achieved_goal", "desired_goal")


class UnsupportedEnvError(UserError):
    """An environment cannot be used for training."""

    def __init__(self, where: str, problem: str, remedy: str) -> None:
        """Build the message from the environment, the problem and the fix."""
        super().__init__(f"{where}: {problem}; {remedy}")
        self.problem, self.remedy = problem, remedy


@contextmanager
def wrap_env_errors(where: str, method: str) -> Iterator[None]:
    """Convert an exception in an environment's method to a one-line error with its location.

    Raises:
        UnsupportedEnvError: The block raised an exception.
    """
    try:
        yield
    except UnsupportedEnvError:
        raise
    except (Exception, SystemExit) as error:  # user code can raise anything
        problem = f"its {method} failed: {describe_error(error)}"
        raise UnsupportedEnvError(where, problem, "fix the line shown") from error


def goal_space(space: spaces.Space[Any], where: str) -> spaces.Dict:
    """Return the observation space if it holds the three vectors of a goal environment.

    Raises:
        UnsupportedEnvError: It does not.
    """
    if not isinstance(space, spaces.Dict) or not set(KEYS) <= set(space):
        raise UnsupportedEnvError(
            where,
            "it is not a goal environment: its observation space must be a Dict with the keys "
            f"{', '.join(KEYS)}, got {space}",
            "add them with a gymnasium.ObservationWrapper",
        )
    for key in KEYS:
        if not isinstance(space[key], spaces.Box) or len(space[key].shape or ()) != 1:
            raise UnsupportedEnvError(
                where,
                f"{key!r} must be a vector (a one-dimensional Box), got {space[key]}",
                "flatten it, as gymnasium.wrappers.FlattenObservation does",
            )
    if space["achieved_goal"].shape != space["desired_goal"].shape:
        raise UnsupportedEnvError(
            where,
            f"achieved_goal and desired_goal must have the same shape, got "
            f"{space['achieved_goal'].shape} and {space['desired_goal'].shape}",
            "achieved_goal must be the current state mapped to the goal space",
        )
    return space


def action_space(env: gym.Env[Any, Any], where: str) -> spaces.Box:
    """Return the action space if it is a bounded vector of floats.

    Raises:
        UnsupportedEnvError: It is not.
    """
    action = env.action_space
    problem = f"the action space must be a bounded, one-dimensional Box of floats, got {action}"
    if not isinstance(action, spaces.Box):
        raise UnsupportedEnvError(where, problem, "discrete actions are not supported")
    if len(action.shape) != 1:
        raise UnsupportedEnvError(where, problem, "flatten it with a gymnasium.ActionWrapper")
    if action.dtype not in (np.float32, np.float64):
        remedy = "declare it with dtype=np.float32 and round the action in step"
        raise UnsupportedEnvError(where, problem, remedy)
    if not action.is_bounded():
        remedy = "give it finite low and high, and clip or scale the action in step"
        raise UnsupportedEnvError(where, problem, remedy)
    return action


def horizon(env: gym.Env[Any, Any], where: str) -> int:
    """Return the maximum number of steps per episode.

    Raises:
        UnsupportedEnvError: It is not set, or too large for an episode to fit in memory.
    """
    steps = env.spec.max_episode_steps if env.spec else None
    if steps is None:
        remedy = "set it in gymnasium.register or in env_kwargs"
        raise UnsupportedEnvError(where, "it has no max_episode_steps", remedy)
    if steps > MAX_SIZE:
        problem = f"max_episode_steps must be at most {MAX_SIZE:,}, got {steps:,}"
        raise UnsupportedEnvError(where, problem, "set a lower max_episode_steps in env_kwargs")
    return steps


def reward_method(env: gym.Env[Any, Any], where: str) -> Any:
    """Return the environment's `compute_reward` method.

    Raises:
        UnsupportedEnvError: It has none.
    """
    try:
        method = env.get_wrapper_attr("compute_reward")
    except AttributeError:
        method = None
    if not callable(method):
        raise UnsupportedEnvError(
            where,
            "it has no method compute_reward(achieved_goal, desired_goal, info)",
            "add it: hindsight relabeling needs the rewards of other goals",
        )
    return method
