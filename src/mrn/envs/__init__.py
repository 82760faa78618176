"""Tasks, the engines that simulate them, and their rewards."""

from mrn.envs.engines import engines_of, make_envs
from mrn.envs.tasks import EXTRA_TASKS, TASKS, Task, TaskSpec, find_task
from mrn.envs.vector import GoalVectorEnv, Observation

__all__ = [
    "EXTRA_TASKS",
    "TASKS",
    "GoalVectorEnv",
    "Observation",
    "Task",
    "TaskSpec",
    "engines_of",
    "find_task",
    "make_envs",
]
