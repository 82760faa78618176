"""Success of goals that the environment did not draw, for custom environments."""

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from mrn.envs.requirements import wrap_env_errors
from mrn.envs.rewards import Reward

METHODS = ("is_success", "_is_success")
"""Methods of an environment that map achieved and desired goal to success, by priority."""


class EnvSuccess:
    """The environment's own success criterion, applied to batches of goals.

    In order of priority: its method `is_success(achieved_goal, desired_goal)`, its sparse reward
    if it has an attribute `reward_type` (both as in Gymnasium-Robotics), or a reward of 0.
    """

    def __init__(self, env: gym.Env[Any, Any], reward: Reward, where: str) -> None:
        """Choose the criterion.

        Args:
            env: An environment that is only used for this.
            reward: Its reward.
            where: Name of the environment for error messages.
        """
        self.env: Any = env.unwrapped
        self.reward, self.where = reward, where
        with wrap_env_errors(where, "reset"):
            goal = np.asarray(env.reset(seed=0)[0]["desired_goal"], np.float64)
        methods = (getattr(self.env, name, None) for name in METHODS)
        self.method: Any = next((method for method in methods if _accepts(method, goal)), None)
        self.has_sparse_reward = hasattr(self.env, "reward_type")

    def __call__(self, achieved: Tensor, desired: Tensor) -> Tensor:
        """Return whether goals (B, goal) are reached, shape (B,), on the device of the goals."""
        if self.method is None:
            return self._by_reward(achieved, desired)
        goals = zip(achieved.cpu().double().numpy(), desired.cpu().double().numpy(), strict=True)
        with wrap_env_errors(self.where, self.method.__name__):
            success = [bool(self.method(a, d)) for a, d in goals]
        return torch.tensor(success, device=achieved.device)

    def _by_reward(self, achieved: Tensor, desired: Tensor) -> Tensor:
        if not self.has_sparse_reward:
            reward = self.reward(achieved, desired)
            if ((reward > -1) & (reward < 0)).any():
                warnings.warn(
                    f"{self.where} has a dense reward: a goal counts as reached only where it is "
                    "exactly 0; add a method is_success(achieved_goal, desired_goal)",
                    stacklevel=2,
                )
            return reward >= 0
        chosen, self.env.reward_type = self.env.reward_type, "sparse"
        try:
            return self.reward(achieved, desired) >= 0
        finally:
            self.env.reward_type = chosen


def _accepts(method: Any, goal: np.ndarray) -> bool:
    """Return whether a method takes two goals, and counts a goal as its own success."""
    try:
        return bool(method(goal, goal.copy()))
    except Exception:  # a method of the same name may have any signature
        return False
