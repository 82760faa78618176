"""Monolithic critic: Q = MLP(s, a, g)."""

import torch
from torch import Tensor

from mrn.critics.base import Critic, Dims, mlp


class Monolithic(Critic):
    """Critic with three hidden layers over the concatenation of s, a and g."""

    def __init__(self, dims: Dims, hidden_dim: int) -> None:
        """Build three hidden layers of width `hidden_dim`."""
        super().__init__()
        self.net = mlp(
            [dims.state + dims.action + dims.goal, hidden_dim, hidden_dim, hidden_dim, 1]
        )

    def goal_side(self, state: Tensor, goal: Tensor) -> Tensor:
        """Return the goal; every layer needs the action."""
        return goal

    def score(self, state: Tensor, action: Tensor, goal_side: Tensor) -> Tensor:
        """Return MLP(s, a, g), shape (B,)."""
        return self.net(torch.cat([state, action, goal_side], dim=-1)).squeeze(-1)
