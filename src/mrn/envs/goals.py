"""User-chosen goals that replace the goals an environment draws."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mrn.envs.tasks import Task, TaskSpec
from mrn.envs.vector import GoalVectorEnv, Observation, Step
from mrn.utils.errors import UserError


class ChosenGoal(GoalVectorEnv):
    """Environments that all pursue one given goal.

    The goal does not affect the simulation, so replacing it in the observation is enough. The task
    decides whether it is reached. An environment that terminates at its own goal still does.
    """

    def __init__(self, envs: GoalVectorEnv, goal: np.ndarray, goal_task: Task) -> None:
        """Wrap environments, and close them together with this one.

        Args:
            envs: The environments.
            goal: The goal, shape (goal,).
            goal_task: Their task, which decides success.
        """
        super().__init__(envs.task, envs.num_envs)
        self.envs, self.goal, self.goal_task, self.engine = envs, goal, goal_task, envs.engine

    def _reset(self, seed: int, episode: int) -> Observation:
        return self._replace_goal(self.envs.reset(seed, episode))

    def _step(self, action: np.ndarray) -> Step:
        step = self.envs._step(action)
        success = self.goal_task.is_at_goal(step.observation.achieved, self.goal)
        return step._replace(observation=self._replace_goal(step.observation), success=success)

    def _replace_goal(self, observation: Observation) -> Observation:
        return observation._replace(goal=np.tile(self.goal, (self.num_envs, 1)))

    def close(self) -> None:
        """Close the environments."""
        self.envs.close()


def parse_goal(values: Any, spec: TaskSpec, example: Sequence[float]) -> np.ndarray:
    """Convert user input to a goal of a task, shape (goal,).

    Raises:
        UserError: The input has the wrong size or is not numeric. The message shows `example`.
    """
    expected = (
        f"a goal of {spec.name} has {spec.goal_dim} values, such as "
        f"{','.join(f'{value:.3g}' for value in example)}"
    )
    try:
        goal = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise UserError(f"{expected}; got {values!r}") from None
    if goal.shape != (spec.goal_dim,):
        got = f"{goal.size} values" if goal.ndim == 1 else f"shape {goal.shape}"
        raise UserError(f"{expected}; got {got}: {values}")
    if not np.isfinite(goal).all():
        raise UserError(f"{expected}; got a number that is not finite: {values}")
    return goal
