"""Metric critics: minus a distance between the embeddings e1(s, a) and e2(s, g)."""

from typing import Any

import torch
from torch import Tensor

from mrn.critics.base import Critic, Dims, mlp
from mrn.critics.heads.base import Head


class MetricCritic(Critic):
    """Critic Q(s, a, g) = -d(e1(s, a), e2(s, g)) with a head d (Sec. 3.2 of the paper)."""

    def __init__(self, dims: Dims, hidden_dim: int, head: Head) -> None:
        """Build two encoders with two layers each ([linear, relu] x 2) below the head."""
        super().__init__()
        self.e1 = mlp([dims.state + dims.action, hidden_dim, hidden_dim], activate_last=True)
        self.e2 = mlp([dims.state + dims.goal, hidden_dim, hidden_dim], activate_last=True)
        self.head = head

    @property
    def is_quasimetric(self) -> bool:
        """Return whether the head is a quasipseudometric."""
        return self.head.is_quasimetric

    def goal_side(self, state: Tensor, goal: Tensor) -> Any:
        """Return the head's projection of e2(s, g)."""
        return self.head.project(self.e2(torch.cat([state, goal], dim=-1)))

    def embed(self, state: Tensor, action: Tensor) -> Tensor:
        """Return e1(s, a), shape (B, hidden_dim)."""
        return self.e1(torch.cat([state, action], dim=-1))

    def sides(self, state: Tensor, action: Tensor, goal_side: Any) -> tuple[Any, Any]:
        """Return the two projections that the head compares."""
        return self.head.project(self.embed(state, action)), goal_side

    def score(self, state: Tensor, action: Tensor, goal_side: Any) -> Tensor:
        """Return minus the distance from e1(s, a) to the goal side, shape (B,)."""
        return -self.head.distance(*self.sides(state, action, goal_side))


class MetricCriticSAG(MetricCritic):
    """Ablation in which e2 also sees the action: Q = -d(e1(s, a), e2(s, a, g)) (Sec. 5.2)."""

    def __init__(self, dims: Dims, hidden_dim: int, head: Head) -> None:
        """Build the encoders; the second one takes s, a and g."""
        super().__init__(dims, hidden_dim, head)
        self.e2 = mlp(
            [dims.state + dims.action + dims.goal, hidden_dim, hidden_dim], activate_last=True
        )

    def goal_side(self, state: Tensor, goal: Tensor) -> Tensor:
        """Return the goal; e2 needs the action."""
        return goal

    def sides(self, state: Tensor, action: Tensor, goal_side: Tensor) -> tuple[Any, Any]:
        """Return the projections of e1(s, a) and e2(s, a, g)."""
        y = self.e2(torch.cat([state, action, goal_side], dim=-1))  # (B, hidden_dim)
        return super().sides(state, action, self.head.project(y))
