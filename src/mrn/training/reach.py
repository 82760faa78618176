"""Reaching a chosen goal in a given environment."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mrn.agent import Agent
from mrn.envs.goals import parse_goal
from mrn.utils.errors import UserError
from mrn.utils.normalization import CLIP_STD
from mrn.utils.plugins import describe_error
from mrn.utils.validation import PositiveInt, check


@dataclass(frozen=True)
class Reach:
    """Result of `Agent.reach`."""

    reached: bool
    steps: int
    """Number of actions taken."""
    observation: dict[str, np.ndarray] = field(repr=False, compare=False)
    """Last observation; pass it to the next `Agent.reach` to continue without a reset."""


def chosen_goal(agent: Agent, values: Any) -> np.ndarray:
    """Convert a user's goal to an array of shape (goal,).

    Warns if the goal lies outside the range of the training goals.

    Raises:
        UserError: The goal has the wrong size, or is not a finite number.
    """
    seen = agent.normalizer.goal
    mean, std = seen.shift.double().cpu().numpy(), 1 / seen.scale.double().cpu().numpy()
    goal = parse_goal(values, agent.spec, mean.tolist())
    distance = np.abs(goal - mean) / std
    worst = int(distance.argmax())
    if distance[worst] > CLIP_STD:
        low, high = mean[worst] - CLIP_STD * std[worst], mean[worst] + CLIP_STD * std[worst]
        warnings.warn(
            f"value {worst + 1} of the goal, {goal[worst]:g}, is outside the training range: "
            f"{distance[worst]:.1f} standard deviations from the mean of the training goals. The "
            f"policy clips inputs at {CLIP_STD:g}, so it may not reach this goal; values from "
            f"{low:.3g} to {high:.3g} are not clipped",
            stacklevel=3,
        )
    return goal


def reach(
    agent: Agent,
    env: Any,
    goal: Sequence[float] | np.ndarray,
    seed: int | None = None,
    observation: dict[str, np.ndarray] | None = None,
    steps: int | None = None,
) -> Reach:
    """Act until the goal is reached, the episode ends, or `steps` actions are taken.

    `Agent.reach` describes the arguments.

    Raises:
        UserError: The goal or the environment does not fit the policy, or the environment fails.
    """
    steps = agent.spec.horizon if steps is None else steps
    check("steps", steps, PositiveInt)
    target = chosen_goal(agent, goal)
    _check_env(agent, env)
    if observation is None:
        observation, _ = _call(agent, "reset", lambda: env.reset(seed=seed))
    elif seed is not None:
        raise UserError("seed and observation are mutually exclusive: a seed triggers a reset")
    taken, ended = 0, False
    while not (reached := _is_reached(agent, observation, target)) and taken < steps and not ended:
        action, _ = agent.predict({**observation, "desired_goal": target})
        step = _call(agent, "step", lambda action=action: env.step(action))
        observation, _, terminated, truncated, _ = step
        taken, ended = taken + 1, bool(terminated or truncated)
    return Reach(reached, taken, observation)


def _is_reached(agent: Agent, observation: Any, goal: np.ndarray) -> bool:
    try:
        achieved = np.asarray(observation["achieved_goal"], np.float64)
    except (KeyError, TypeError, IndexError, ValueError):
        achieved = np.empty(0)
    if achieved.shape != goal.shape:
        raise UserError(
            f"the environment is not a goal environment like {agent.spec.name}: its observations "
            f"must have an 'achieved_goal' of {len(goal)} values"
        )
    return bool(agent.task.is_at_goal(achieved[None], goal)[0])


def _check_env(agent: Agent, env: Any) -> None:
    if not (hasattr(env, "reset") and hasattr(env, "step") and hasattr(env, "action_space")):
        raise UserError(f"reach needs a Gymnasium environment, got {type(env).__name__}")
    found, expected = env.action_space.shape, (agent.spec.action_dim,)
    if found != expected:
        raise UserError(
            f"the policy for {agent.spec.name} has actions of shape {expected}, but the "
            f"environment expects {found}"
            + ("; pass a single environment, not a vector" if hasattr(env, "num_envs") else "")
        )


def _call(agent: Agent, name: str, method: Any) -> Any:
    """Call a method of the user's environment; errors become one line with their location."""
    try:
        return method()
    except Exception as error:
        raise UserError(
            f"{name} of the {agent.spec.name} environment failed: {describe_error(error)}"
        ) from error
