"""Contrastive metric distillation in one step (Myers et al. 2024, https://arxiv.org/abs/2406.17098).

The log occupancy ratio log p(g | s, a) / p(g) is not a distance, because goals differ in how often
they are reached. The successor distance

    d(s, a, g) = log p(g | g) - log p(g | s, a)

is a quasimetric even in stochastic environments. CMD-1 learns it with one contrastive loss, from
logits f(s, a, g) = c(g) - d(phi(s, a), h(g)). The network c(g) absorbs what depends on the goal
alone.

The authors embed goals and states with one network, so that d = 0 where a state is the goal. Here
goals have their own encoder, and d(phi(s', a'), h(g)) is penalized where s' achieves g. As in their
code, a' is the action of another transition: the distance from a goal does not depend on it.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from mrn.algorithms.base import AlgorithmSettings, CriticFactory
from mrn.algorithms.distance_losses import (
    Direction,
    info_nce_loss,
    logsumexp_penalty,
    zero_cost_loss,
)
from mrn.algorithms.embeddings import GoalCritic
from mrn.algorithms.quasimetric import ContrastiveSettings, OccupancyAlgorithm
from mrn.batch import Batch, Trajectory
from mrn.critics import Dims
from mrn.critics.base import mlp
from mrn.utils.validation import NonNegativeFloat


@dataclass(frozen=True)
class CMDSettings(ContrastiveSettings):
    """Hyperparameters of CMD; those of the loss are the authors'."""

    info_nce: Direction = "symmetric"
    """Select the goal of a transition (forward), the transition of a goal (backward), or both."""
    logsumexp_coef: NonNegativeFloat = 0.01
    """Weight of the squared logsumexp of the logits, which keeps them bounded."""
    goal_coef: NonNegativeFloat = 1.0
    """Weight of the loss that sets the distance from a state to its achieved goal to 0."""


class CMD(OccupancyAlgorithm):
    """Contrastive learning of the successor distance: logits c(g) - d."""

    Settings: ClassVar[type[AlgorithmSettings]] = CMDSettings
    METRICS = (*OccupancyAlgorithm.METRICS, "contrastive_loss", "goal_loss")
    Network = GoalCritic

    critic: GoalCritic
    settings: CMDSettings

    def __init__(self, dims: Dims, make_critic: CriticFactory, settings: CMDSettings) -> None:
        """Build the networks of the base class and the offset c(g)."""
        super().__init__(dims, make_critic, settings)
        self.offset = mlp([dims.goal, settings.hidden_dim, settings.hidden_dim, 1])
        self.add_networks(self.offset)

    def critic_loss(self, batch: Batch, trajectory: Trajectory) -> tuple[Tensor, list[Tensor]]:
        """Return InfoNCE over the batch, the penalty, and the loss of achieved goals."""
        critic, settings, goal = self.critic, self.settings, trajectory.future_goal
        distance = critic.pairs(critic.embed(batch.state, batch.action), goal)
        logits = self.offset(goal).T - distance  # (1, B) - (B, B)
        contrastive = info_nce_loss(logits, settings.info_nce, settings.label_smoothing)
        any_action = batch.action.roll(1, dims=0)
        at_goal = -critic(batch.next_state, any_action, trajectory.achieved)
        goal_loss = settings.goal_coef * zero_cost_loss(at_goal)
        penalty = settings.logsumexp_coef * logsumexp_penalty(logits)
        return contrastive + penalty + goal_loss, [contrastive, goal_loss]
