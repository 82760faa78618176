"""A goal of the user's choice, in environments that would choose one themselves."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from mrn.envs.rewards import Reward
from mrn.envs.tasks import TaskSpec
from mrn.envs.vector import GoalVectorEnv, Observation, Step
from mrn.utils.errors import UserError


class ChosenGoal(GoalVectorEnv):
    """Environments that all have one goal, whatever goals they have drawn.

    A goal does not change what a simulation does, so that it is enough to show another one, and
    to say by the task's reward whether it is reached. An environment that ends its episodes at
    its own goal still does.
    """

    def __init__(self, envs: GoalVectorEnv, goal: np.ndarray, reward: Reward) -> None:
        """Take environments, which are closed with this.

        Args:
            envs: The environments.
            goal: Of shape (goal,).
            reward: Of their task.
        """
        super().__init__(envs.task, envs.num_envs)
        self.envs, self.goal, self.reward, self.engine = envs, goal, reward, envs.engine

    def _reset(self, seed: int, episode: int) -> Observation:
        return self._show(self.envs.reset(seed, episode))

    def _step(self, action: np.ndarray) -> Step:
        step = self.envs._step(action)
        success = is_at_goal(step.observation.achieved, self.goal, self.reward)
        return step._replace(observation=self._show(step.observation), success=success)

    def _show(self, observation: Observation) -> Observation:
        return observation._replace(goal=np.tile(self.goal, (self.num_envs, 1)))

    def close(self) -> None:
        """Free the environments."""
        self.envs.close()


def is_at_goal(achieved: np.ndarray, goal: np.ndarray, reward: Reward) -> np.ndarray:
    """Whether achieved goals of shape (N, goal) are as good as a goal, by a reward; shape (N,)."""
    there = torch.as_tensor(achieved, dtype=torch.float64)
    return (reward(there, torch.as_tensor(goal).double().expand_as(there)) >= 0).numpy()


def parse_goal(values: Any, spec: TaskSpec, example: Sequence[float]) -> np.ndarray:
    """A goal of a task from what a user gives, shape (goal,).

    Raises:
        UserError: It has another size, or is no number; says what is right, by an example.
    """
    needed = (
        f"a goal of {spec.name} has {spec.goal_dim} values, such as "
        f"{','.join(f'{value:.3g}' for value in example)}"
    )
    try:
        goal = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise UserError(f"{needed}; got {values!r}") from None
    if goal.shape != (spec.goal_dim,):
        got = f"{goal.size} values" if goal.ndim == 1 else f"shape {goal.shape}"
        raise UserError(f"{needed}; got {got}: {values}")
    if not np.isfinite(goal).all():
        raise UserError(f"{needed}; got a number that is not finite: {values}")
    return goal
