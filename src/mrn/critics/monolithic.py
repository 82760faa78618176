"""One network for everything: Q = MLP(s, a, g)."""

import torch
from torch import Tensor

from mrn.critics.base import Critic, Dims, mlp


class Monolithic(Critic):
    """The common critic: three hidden layers over the concatenation of s, a and g."""

    def __init__(self, dims: Dims, hidden_dim: int) -> None:
        """Build three hidden layers of the given hidden_dim."""
        super().__init__()
        self.net = mlp(
            [dims.state + dims.action + dims.goal, hidden_dim, hidden_dim, hidden_dim, 1]
        )

    def goal_side(self, state: Tensor, goal: Tensor) -> Tensor:
        """The goal itself: nothing can be computed before the action is known."""
        return goal

    def score(self, state: Tensor, action: Tensor, goal_side: Tensor) -> Tensor:
        """MLP(s, a, g)."""
        return self.net(torch.cat([state, action, goal_side], dim=-1)).squeeze(-1)  # (B,)
