"""Bilinear critics: UVFA and the bilinear value network (BVN)."""

import torch
from torch import Tensor

from mrn.critics.base import Critic, Dims, mlp

EMBEDDING_DIM = 16


class Bilinear(Critic):
    """Critic Q = f(s, a) . phi(s, g), or f(s, a) . phi(g) without the state in phi.

    BVN: Hong et al. 2022, "Bilinear value networks" (https://arxiv.org/abs/2204.13695).
    UVFA: Schaul et al. 2015, "Universal value function approximators" (ICML 2015).
    """

    def __init__(self, dims: Dims, hidden_dim: int, state_in_phi: bool) -> None:
        """Build f and phi, each with three hidden layers of width `hidden_dim`."""
        super().__init__()
        self.state_in_phi = state_in_phi
        phi_inputs = dims.goal + (dims.state if state_in_phi else 0)
        self.f = mlp([dims.state + dims.action, hidden_dim, hidden_dim, hidden_dim, EMBEDDING_DIM])
        self.phi = mlp([phi_inputs, hidden_dim, hidden_dim, hidden_dim, EMBEDDING_DIM])

    def goal_side(self, state: Tensor, goal: Tensor) -> Tensor:
        """Return phi(s, g) or phi(g), shape (B, 16)."""
        return self.phi(torch.cat([state, goal], dim=-1) if self.state_in_phi else goal)

    def score(self, state: Tensor, action: Tensor, goal_side: Tensor) -> Tensor:
        """Return the inner product of f(s, a) and the goal side, shape (B,)."""
        return (self.f(torch.cat([state, action], dim=-1)) * goal_side).sum(dim=-1)

    def pairs(self, state: Tensor, action: Tensor, goal: Tensor) -> Tensor:
        """Return Q(s_i, a_i, g_j) of all pairs, shape (B, B), without the state in phi."""
        return self.f(torch.cat([state, action], dim=-1)) @ self.phi(goal).T
