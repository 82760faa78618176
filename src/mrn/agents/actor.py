"""The policy network."""

import torch
from torch import Tensor, nn

from mrn.critics.base import Dims, mlp


class Actor(nn.Module):
    """a = tanh(MLP(s, g)) in [-1, 1]: the monolithic critic's layers (Sec. 5), another output."""

    def __init__(self, dims: Dims, width: int) -> None:
        """Build three hidden layers of the given width."""
        super().__init__()
        self.action_dim = dims.action
        self.net = mlp([dims.state + dims.goal, width, width, width, dims.action])

    def forward(self, state: Tensor, goal: Tensor) -> Tensor:
        """Actions of shape (B, action)."""
        return torch.tanh(self.net(torch.cat([state, goal], dim=-1)))
