"""Learned dynamics of a task: what an action changes."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mrn.critics.base import Dims, mlp


class Change(NamedTuple):
    """Changes in one step, in standard deviations, tensors of shape (B, ...)."""

    state: Tensor
    achieved: Tensor  # of the achieved goal


class Dynamics(nn.Module):
    """Deterministic model: an MLP maps (s, a) to the changes of state and achieved goal.

    Predicting the achieved goal needs no map from states to goals, which tasks do not provide. It
    also covers tasks whose states do not contain the goal, such as a position that the agent can
    only infer from its velocity. The untrained model predicts no change.
    """

    def __init__(self, dims: Dims, hidden_dim: int) -> None:
        """Build four hidden layers of width `hidden_dim`."""
        super().__init__()
        self.sizes = [dims.state, dims.goal]
        self.net = mlp([dims.state + dims.action, *[hidden_dim] * 4, sum(self.sizes)])
        for weight in self.net[-1].parameters():
            nn.init.zeros_(weight)

    def forward(self, state: Tensor, action: Tensor) -> Change:
        """Return the predicted changes."""
        return Change(*self.net(torch.cat([state, action], dim=-1)).split(self.sizes, dim=-1))

    def loss(self, state: Tensor, action: Tensor, change: Change) -> Tensor:
        """Return the mean absolute error of the predicted changes, over all their entries."""
        predicted = torch.cat(self(state, action), dim=-1)
        return F.l1_loss(predicted, torch.cat(change, dim=-1))
