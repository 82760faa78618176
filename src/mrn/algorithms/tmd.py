"""Temporal metric distillation (Myers et al. 2025, https://arxiv.org/abs/2509.20478).

d(phi(s, a), h(g)) and d(psi(s), h(g)) are distances to a goal, in units of minus the log of a
discounted occupancy: each step costs at least -log gamma. Three losses make them optimal, though
the data comes from other policies:

- contrastive: logits -d, backward InfoNCE. What depends on the goal alone cancels.
- action invariance: d(psi(s), phi(s, a)) = 0, as choosing an action costs nothing. By the triangle
  inequality, the distance from a state is then at most that of its best action.
- backup: d(phi(s, a), h(g)) = d(psi(s'), h(g)) - log gamma, with the LINEX loss.

Goals have their own encoder h, tied to states by a fourth loss: d(psi(s'), h(g)) = 0 where s'
achieves g. The authors embed goals with psi, so that the contrastive loss keeps states apart. Here
it applies to both phi(s, a) and psi(s). Distances that should be 0 enter as mean (exp(-d) - 1)^2,
as in MQE: their mean, as in TMD, outweighs the contrastive loss of psi.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from mrn.algorithms.base import AlgorithmSettings
from mrn.algorithms.distance_losses import info_nce_loss, linex_loss, mean_of_pairs, zero_cost_loss
from mrn.algorithms.embeddings import StateCritic
from mrn.algorithms.quasimetric import ContrastiveSettings, OccupancyAlgorithm
from mrn.batch import Batch, Trajectory
from mrn.utils.validation import Fraction, NonNegativeFloat


@dataclass(frozen=True)
class TMDSettings(ContrastiveSettings):
    """Hyperparameters of TMD; those of the loss are from the authors' code."""

    invariance_coef: NonNegativeFloat = 1.0
    """Weight of the distance between a state and its actions."""
    goal_coef: NonNegativeFloat = 1.0
    """Weight of the loss that sets the distance from a state to its achieved goal to 0."""
    backup_coef: NonNegativeFloat = 0.05
    """Weight of the backup."""
    diagonal_weight: Fraction = 0.5
    """Share of matching pairs in the backup; the rest is over all pairs of a batch."""
    linex_limit: NonNegativeFloat = 3.0
    """Excess of a distance over its backup above which the loss is linear."""
    distance_limit: NonNegativeFloat = 4.0
    """Largest distance that a backup continues from; goals beyond it count as out of reach."""


class TMD(OccupancyAlgorithm):
    """Contrastive distance that is invariant to actions and obeys a one-step backup."""

    Settings: ClassVar[type[AlgorithmSettings]] = TMDSettings
    METRICS = (
        *OccupancyAlgorithm.METRICS,
        "contrastive_loss",
        "invariance_loss",
        "goal_loss",
        "backup_loss",
    )
    Network = StateCritic

    critic: StateCritic
    settings: TMDSettings

    def critic_loss(self, batch: Batch, trajectory: Trajectory) -> tuple[Tensor, list[Tensor]]:
        """Return the sum of the four losses."""
        critic, settings, goal = self.critic, self.settings, trajectory.future_goal
        start = critic.embed(batch.state, batch.action)  # phi(s, a)
        state = critic.psi(batch.state)
        distance, state_distance = critic.pairs(start, goal), critic.pairs(state, goal)
        contrastive = torch.stack(
            [
                info_nce_loss(-each, "backward", settings.label_smoothing)
                for each in (distance, state_distance)
            ]
        ).mean()
        invariance = zero_cost_loss(critic.head(state, start))
        at_goal = zero_cost_loss(
            critic.achieved_goal_distance(batch.next_state, trajectory.achieved)
        )
        with torch.no_grad():
            remaining = critic.pairs(critic.psi(batch.next_state), goal)
            remaining.clamp_(max=settings.distance_limit)
        backup = linex_loss(distance, remaining, self.discount, settings.linex_limit)
        losses = [
            contrastive,
            settings.invariance_coef * invariance,
            settings.goal_coef * at_goal,
            settings.backup_coef * mean_of_pairs(backup, settings.diagonal_weight),
        ]
        return sum(losses[1:], losses[0]), losses
