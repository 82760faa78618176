"""Metric critics with one embedding for states and goals."""

from typing import Any

from torch import Tensor

from mrn.critics.base import Dims, mlp
from mrn.critics.heads.base import Head
from mrn.critics.metric import MetricCritic


class SharedMetricCritic(MetricCritic):
    """Critic Q(s, a, g) = -d(phi(s, a), psi(g)); psi also embeds states, by their achieved goals.

    psi sees nothing but the goal, so each goal is one point. A state with the achieved goal ag(s)
    is the point psi(ag(s)). The triangle inequality then holds for the distance between states and
    goals, not only for embeddings. States with the same achieved goal are the same point.
    """

    def __init__(self, dims: Dims, hidden_dim: int, head: Head) -> None:
        """Build phi as e1, and psi as e2 on goals alone."""
        super().__init__(dims, hidden_dim, head)
        self.e2 = mlp([dims.goal, hidden_dim, hidden_dim], activate_last=True)

    def embed_goal(self, goal: Tensor) -> Tensor:
        """Return psi(g), shape (B, hidden_dim)."""
        return self.e2(goal)

    def embed_state(self, state: Tensor, achieved: Tensor) -> Tensor:
        """Return the point of a state, psi(ag(s)), shape (B, hidden_dim)."""
        return self.embed_goal(achieved)

    def goal_side(self, state: Tensor, goal: Tensor) -> Any:
        """Return the head's projection of psi(g)."""
        return self.head.project(self.embed_goal(goal))
