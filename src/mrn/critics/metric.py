"""Critics that are minus a distance between two embeddings: x = e1(s, a), y = e2(s, g)."""

from typing import Any

import torch
from torch import Tensor

from mrn.critics.base import Critic, Dims, mlp
from mrn.critics.heads.base import Head


class MetricCritic(Critic):
    """Q(s, a, g) = -d(e1(s, a), e2(s, g)), d a head (Sec. 3.2 of the paper)."""

    def __init__(self, dims: Dims, hidden_dim: int, head: Head) -> None:
        """Build two encoders of two layers ([linear, relu] x 2) below the head."""
        super().__init__()
        self.e1 = mlp([dims.state + dims.action, hidden_dim, hidden_dim], activate_last=True)
        self.e2 = mlp([dims.state + dims.goal, hidden_dim, hidden_dim], activate_last=True)
        self.head = head

    @property
    def is_quasimetric(self) -> bool:
        """As the head is."""
        return self.head.is_quasimetric

    def goal_side(self, state: Tensor, goal: Tensor) -> Any:
        """The head's projection of e2(s, g)."""
        return self.head.project(self.e2(torch.cat([state, goal], dim=-1)))

    def embed(self, state: Tensor, action: Tensor) -> Tensor:
        """x = e1(s, a), shape (B, hidden_dim)."""
        return self.e1(torch.cat([state, action], dim=-1))

    def sides(self, state: Tensor, action: Tensor, goal_side: Any) -> tuple[Any, Any]:
        """The projections between which the head measures."""
        return self.head.project(self.embed(state, action)), goal_side

    def score(self, state: Tensor, action: Tensor, goal_side: Any) -> Tensor:
        """Minus the distance from e1(s, a) to the goal side."""
        return -self.head.distance(*self.sides(state, action, goal_side))


class MetricCriticSAG(MetricCritic):
    """The ablation in which e2 sees the action too: Q = -d(e1(s, a), e2(s, a, g)) (Sec. 5.2)."""

    def __init__(self, dims: Dims, hidden_dim: int, head: Head) -> None:
        """Build the encoders, the second one over s, a and g."""
        super().__init__(dims, hidden_dim, head)
        self.e2 = mlp(
            [dims.state + dims.action + dims.goal, hidden_dim, hidden_dim], activate_last=True
        )

    def goal_side(self, state: Tensor, goal: Tensor) -> Tensor:
        """The goal itself: e2 has to wait for the action."""
        return goal

    def sides(self, state: Tensor, action: Tensor, goal_side: Tensor) -> tuple[Any, Any]:
        """The projections of e1(s, a) and e2(s, a, g)."""
        y = self.e2(torch.cat([state, action, goal_side], dim=-1))  # (B, hidden_dim)
        return super().sides(state, action, self.head.project(y))
