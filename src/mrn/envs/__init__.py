"""Where the agent lives: tasks, engines and rewards."""

from mrn.envs.engines import engines_of, make_envs
from mrn.envs.tasks import FURTHER, TASKS, Task, TaskShape, find_task
from mrn.envs.vector import GoalVectorEnv, Observation

__all__ = [
    "FURTHER",
    "TASKS",
    "GoalVectorEnv",
    "Observation",
    "Task",
    "TaskShape",
    "engines_of",
    "find_task",
    "make_envs",
]
