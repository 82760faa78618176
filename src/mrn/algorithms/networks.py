"""Policy networks."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mrn.critics.base import Dims, mlp


class Actor(nn.Module):
    """Deterministic policy a = tanh(MLP(s, g)), with the hidden layers of the monolithic critic."""

    def __init__(self, dims: Dims, hidden_dim: int) -> None:
        """Build three hidden layers of width `hidden_dim`."""
        super().__init__()
        self.action_dim = dims.action
        self.net = mlp([dims.state + dims.goal, hidden_dim, hidden_dim, hidden_dim, dims.action])

    def forward(self, state: Tensor, goal: Tensor) -> Tensor:
        """Return actions in [-1, 1], shape (B, action)."""
        return torch.tanh(self.net(torch.cat([state, goal], dim=-1)))


LOG_STD = (-5.0, 2.0)
"""Bounds of the log standard deviation."""


class GaussianActor(nn.Module):
    """Stochastic policy a = tanh(u), u ~ N(mean(s, g), std(s, g)^2); tanh(mean) without noise."""

    def __init__(self, dims: Dims, hidden_dim: int) -> None:
        """Build the layers of `Actor` with two outputs per action: mean and log std."""
        super().__init__()
        self.action_dim = dims.action
        self.net = mlp(
            [dims.state + dims.goal, hidden_dim, hidden_dim, hidden_dim, 2 * dims.action]
        )

    def outputs(self, state: Tensor, goal: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and log std of u, each of shape (B, action)."""
        mean, log_std = self.net(torch.cat([state, goal], dim=-1)).chunk(2, dim=-1)
        return mean, log_std.clamp(*LOG_STD)

    def forward(self, state: Tensor, goal: Tensor) -> Tensor:
        """Return deterministic actions tanh(mean), shape (B, action)."""
        return torch.tanh(self.outputs(state, goal)[0])

    def sample(self, state: Tensor, goal: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions (B, action) and log pi(a) (B,), from standard normal noise (B, action)."""
        mean, log_std = self.outputs(state, goal)
        unsquashed = torch.addcmul(mean, log_std.exp(), noise)
        return torch.tanh(unsquashed), squashed_log_prob(noise, log_std, unsquashed)


def squashed_log_prob(noise: Tensor, log_std: Tensor, unsquashed: Tensor) -> Tensor:
    """Return log pi(tanh(u)) for u = mean + std x noise, shape (B,).

    sum_i log N(noise_i; 0, 1) - log std_i - log(1 - tanh(u_i)^2): the density of u divided by the
    slope of tanh (Haarnoja et al. 2018, appendix C, https://arxiv.org/abs/1812.05905).
    """
    gaussian = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
    # log of 1 - tanh(u)^2 = 4 / (e^u + e^-u)^2, which rounds to 0 far from 0.
    log_slope = 2 * (math.log(2) - unsquashed - F.softplus(-2 * unsquashed))
    return (gaussian - log_slope).sum(dim=-1)
