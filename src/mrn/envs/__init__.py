"""Where the agent lives: tasks, engines and rewards."""

from mrn.envs.tasks import TASKS, Task, TaskShape, find_task
from mrn.envs.vector import GoalVectorEnv, Observation, make_envs

__all__ = ["TASKS", "GoalVectorEnv", "Observation", "Task", "TaskShape", "find_task", "make_envs"]
