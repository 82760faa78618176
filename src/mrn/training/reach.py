"""A policy on its way to one goal of the user's choice, in an environment of the user's."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mrn.agent import Agent
from mrn.envs.goals import is_at_goal, parse_goal
from mrn.utils.errors import UserError
from mrn.utils.normalization import CLIP_STD
from mrn.utils.plugins import describe_error
from mrn.utils.validation import PositiveInt, check


@dataclass(frozen=True)
class Reach:
    """How it went."""

    reached: bool
    steps: int
    """Actions until the goal was reached, or else all that were taken."""
    observation: dict[str, np.ndarray] = field(repr=False, compare=False)
    """The environment's last one, from which to go on to another goal."""


def chosen_goal(agent: Agent, values: Any) -> np.ndarray:
    """A goal for a policy, shape (goal,); one unlike those of its training is warned of.

    Raises:
        UserError: It has another size, or is no number; says what is right.
    """
    seen = agent.normalizer.goal
    mean, std = seen.shift.double().cpu().numpy(), 1 / seen.scale.double().cpu().numpy()
    goal = parse_goal(values, agent.spec, mean.tolist())
    away = np.abs(goal - mean) / std
    worst = int(away.argmax())
    if away[worst] > CLIP_STD:
        low, high = mean[worst] - CLIP_STD * std[worst], mean[worst] + CLIP_STD * std[worst]
        warnings.warn(
            f"value {worst + 1} of the goal, {goal[worst]:g}, is unlike the goals of the training: "
            f"{away[worst]:.1f} standard deviations from their mean. The policy sees all beyond "
            f"{CLIP_STD:g} as the same, so it may not get there; from {low:.3g} to {high:.3g} it can "
            "tell goals apart",
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
    """Let a policy act until a goal is reached, an episode ends, or steps are used up.

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
        raise UserError("a seed is for a reset: give a seed, or an observation to go on from")
    taken, ended = 0, False
    while not (reached := _is_there(agent, observation, target)) and taken < steps and not ended:
        action, _ = agent.predict({**observation, "desired_goal": target})
        answer = _call(agent, "step", lambda action=action: env.step(action))
        observation, _, terminated, truncated, _ = answer
        taken, ended = taken + 1, bool(terminated or truncated)
    return Reach(reached, taken, observation)


def _is_there(agent: Agent, observation: Any, goal: np.ndarray) -> bool:
    try:
        achieved = np.asarray(observation["achieved_goal"], np.float64)
    except (KeyError, TypeError, IndexError, ValueError):
        achieved = np.empty(0)
    if achieved.shape != goal.shape:
        raise UserError(
            f"the environment is no goal environment like {agent.spec.name}: its observations "
            f"must have an 'achieved_goal' of {len(goal)} values"
        )
    return bool(is_at_goal(achieved[None], goal, agent.task.reward)[0])


def _check_env(agent: Agent, env: Any) -> None:
    if not (hasattr(env, "reset") and hasattr(env, "step") and hasattr(env, "action_space")):
        raise UserError(f"reach needs a Gymnasium environment, got {type(env).__name__}")
    found, own = env.action_space.shape, (agent.spec.action_dim,)
    if found != own:
        raise UserError(
            f"this policy of {agent.spec.name} has actions of shape {own}, the environment's have "
            f"{found}"
            + ("; give a single environment, not a vector" if hasattr(env, "num_envs") else "")
        )


def _call(agent: Agent, what: str, method: Any) -> Any:
    """What the user's environment answers; what it raises is one sentence that says where."""
    try:
        return method()
    except Exception as error:
        name = agent.spec.name
        raise UserError(
            f"the environment of {name} failed in a {what}: {describe_error(error)}"
        ) from error
