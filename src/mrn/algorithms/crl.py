"""Contrastive RL (Eysenbach et al. 2022, https://arxiv.org/abs/2206.07568), for goals.

A classifier f(s, a, g) learns to tell goals g that a trajectory reached after (s, a) from goals of
other trajectories. Future goals are sampled k steps ahead with P(k) proportional to gamma^k. The
optimal logit is the log ratio

    f(s, a, g) = log p(g | s, a) - log p(g) + constant,

where p(g | s, a) is the discounted occupancy of the goal. An actor that maximizes f therefore
maximizes the probability of the goal. Here f = c + Q(s, a, g) with a learned scalar c. Q is minus
a distance d(phi(s, a), h(g)); for the critic `uvfa`, it is the inner product phi(s, a) . h(g).

A distance alone cannot represent a positive log ratio. Without c, the penalty moves all goals
equally far away instead, and learning stops.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from mrn.algorithms.adam import Adam
from mrn.algorithms.base import AlgorithmSettings, CriticFactory
from mrn.algorithms.distance_losses import Direction, info_nce_loss, logsumexp_penalty
from mrn.algorithms.embeddings import GoalCritic
from mrn.algorithms.quasimetric import ContrastiveSettings, OccupancyAlgorithm
from mrn.batch import Batch, Trajectory
from mrn.critics import Critic, Dims
from mrn.critics.bilinear import Bilinear
from mrn.utils.validation import NonNegativeFloat


@dataclass(frozen=True)
class CRLSettings(ContrastiveSettings):
    """Hyperparameters of contrastive RL; those of the loss are JaxGCRL's."""

    info_nce: Direction = "symmetric"
    """Select the goal of a transition (forward), the transition of a goal (backward), or both."""
    logsumexp_coef: NonNegativeFloat = 0.1
    """Weight of the squared logsumexp of the logits, which keeps them bounded."""
    offset_learning_rate: NonNegativeFloat = 1e-2
    """Learning rate of Adam for the offset of the logits, a single number."""


class CRL(OccupancyAlgorithm):
    """Contrastive learning of the log discounted occupancy ratio of goals."""

    Settings: ClassVar[type[AlgorithmSettings]] = CRLSettings
    Network = GoalCritic
    settings: CRLSettings

    def __init__(self, dims: Dims, make_critic: CriticFactory, settings: CRLSettings) -> None:
        """Build the networks of the base class and the offset of the logits."""
        super().__init__(dims, make_critic, settings)
        self.offset = nn.Parameter(torch.zeros(()))
        self.offset_optimizer = Adam([self.offset], settings.offset_learning_rate)

    @property
    def optimizers(self) -> dict[str, Adam]:
        """Return the optimizers of the base class and that of the offset."""
        return super().optimizers | {"offset_optimizer": self.offset_optimizer}

    @classmethod
    def can_use(cls, critic: str) -> bool:
        """Return whether a built-in critic has a quasimetric head or is an inner product."""
        return critic == "uvfa" or super().can_use(critic)

    def make_network(self, dims: Dims, critic: Critic) -> Critic:
        """Build the encoders below the head of a critic; take an inner product as it is."""
        is_inner_product = isinstance(critic, Bilinear) and not critic.state_in_phi
        return critic if is_inner_product else super().make_network(dims, critic)

    def logits(self, state: Tensor, action: Tensor, goal: Tensor) -> Tensor:
        """Return f(s_i, a_i, g_j) for all pairs, shape (B, B)."""
        critic = self.critic
        if isinstance(critic, Bilinear):
            return self.offset + critic.pairs(state, action, goal)
        assert isinstance(critic, GoalCritic)
        return self.offset - critic.pairs(critic.embed(state, action), goal)

    def critic_loss(self, batch: Batch, trajectory: Trajectory) -> tuple[Tensor, list[Tensor]]:
        """Return InfoNCE over the batch, plus the penalty."""
        logits = self.logits(batch.state, batch.action, trajectory.future_goal)
        loss = info_nce_loss(logits, self.settings.info_nce, self.settings.label_smoothing)
        return loss + self.settings.logsumexp_coef * logsumexp_penalty(logits), []
