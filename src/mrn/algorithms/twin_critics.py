"""Twin critics with clipped double Q-learning.

Fujimoto et al. 2018, Sec. 4.2 (https://arxiv.org/abs/1802.09477). Targets take the minimum of two
critics, because both rarely overestimate the same action.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from mrn.algorithms.base import Algorithm, AlgorithmSettings, CriticFactory
from mrn.algorithms.losses import bellman_target
from mrn.algorithms.targets import make_target
from mrn.batch import Batch
from mrn.critics import Critic, Dims


class TwinCriticAlgorithm(Algorithm):
    """Base class of algorithms with two critics of the same architecture."""

    critic: Critic

    def __init__(self, dims: Dims, make_critic: CriticFactory, settings: AlgorithmSettings) -> None:
        """Build two critics with different initial weights, and their targets."""
        super().__init__(dims, make_critic, settings)
        self.critic, self.twin = make_critic(), make_critic()
        self.critic_target, self.twin_target = make_target(self.critic), make_target(self.twin)
        self._critic_weights: list[Tensor] = [*self.critic.parameters(), *self.twin.parameters()]
        self._critic_pairs = [(self.critic_target, self.critic), (self.twin_target, self.twin)]

    def target(self, batch: Batch, next_action: Tensor) -> Tensor:
        """Return r + gamma min_i Q_i'(s', a', g), clipped to the range of values; shape (B,)."""
        inputs = (batch.next_state, next_action, batch.goal)
        next_q = torch.minimum(self.critic_target(*inputs), self.twin_target(*inputs))
        return bellman_target(batch.reward, batch.terminated, next_q, self.discount)

    def critic_gradients(self, batch: Batch, target: Tensor) -> tuple[Tensor, Tensor, Any, Any]:
        """Set the gradients of sum_i mean (Q_i(s, a, g) - target)^2.

        Returns:
            The loss, the mean of the first critic, and both goal sides for the actor's loss.
        """
        state, action, goal = batch.state, batch.action, batch.goal
        side, twin_side = self.critic.goal_side(state, goal), self.twin.goal_side(state, goal)
        q = self.critic.score(state, action, side)
        loss = F.mse_loss(q, target) + F.mse_loss(self.twin.score(state, action, twin_side), target)
        loss.backward()
        return loss, q.mean(), side, twin_side
