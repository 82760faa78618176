"""Episodes of parallel environments as arrays on the host."""

from typing import NamedTuple

import numpy as np

from mrn.envs.tasks import TaskSpec


class Episodes(NamedTuple):
    """One episode per environment; entries beyond an episode's length are undefined."""

    state: np.ndarray  # (N, T + 1, state)
    achieved: np.ndarray  # (N, T + 1, goal)
    goal: np.ndarray  # (N, T + 1, goal)
    action: np.ndarray  # (N, T + 1, action), in [-1, 1]; undefined after the last step
    success: np.ndarray  # (N, T), after each action
    length: np.ndarray  # (N,), in transitions
    terminated: np.ndarray  # (N,), False for episodes truncated by the time limit

    @classmethod
    def allocate(cls, spec: TaskSpec, num_envs: int) -> "Episodes":
        """Allocate arrays that every rollout fills in place."""
        n, t = num_envs, spec.horizon
        return cls(
            state=np.zeros((n, t + 1, spec.state_dim), np.float32),
            achieved=np.zeros((n, t + 1, spec.goal_dim), np.float32),
            goal=np.zeros((n, t + 1, spec.goal_dim), np.float32),
            action=np.zeros((n, t + 1, spec.action_dim), np.float32),
            success=np.zeros((n, t), bool),
            length=np.zeros(n, np.int64),
            terminated=np.zeros(n, bool),
        )
