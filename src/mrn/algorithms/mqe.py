"""Multistep quasimetric estimation (Zheng et al. 2025, https://arxiv.org/abs/2511.07730).

The distance of TMD without its contrastive loss: with steps of many lengths, the backup suffices. A
waypoint w is the state k steps after s, on the way to the goal. The losses are

- backup: d(phi(s, a), h(g)) = d(psi(w), h(g)) - k log gamma, with the LINEX loss.
- action invariance: d(psi(s), phi(s, a)) = 0, as mean (exp(-d) - 1)^2.

Goals have their own encoder h, tied to states by a third loss: d(psi(s'), h(g)) = 0 where s'
achieves g. The authors embed goals with psi, which keeps states apart. Here psi = const would solve
all of the above, so the backup also applies to d(psi(s), h(g)).

An agent that stays at its goal passes many waypoints there, but k steps were not needed. The replay
buffer therefore takes waypoints only up to the first step that achieves the goal.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from mrn.algorithms.base import AlgorithmSettings, CriticFactory
from mrn.algorithms.distance_losses import linex_loss, mean_of_pairs, zero_cost_loss
from mrn.algorithms.embeddings import StateCritic
from mrn.algorithms.quasimetric import OccupancyAlgorithm, OccupancySettings
from mrn.batch import Batch, Trajectory, TrajectorySampling
from mrn.critics import Dims
from mrn.utils.validation import Bounds, Fraction, NonNegativeFloat


@dataclass(frozen=True)
class MQESettings(OccupancySettings):
    """Hyperparameters of MQE; those of the loss are from the authors' code."""

    next_state_prob: Fraction = 0.2
    """Probability that the waypoint is the next state."""
    waypoint_decay: Annotated[float, Bounds(ge=0, lt=1)] = 0.95
    """Otherwise it is k steps ahead with probability proportional to this number to the k."""
    invariance_coef: NonNegativeFloat = 1.0
    """Weight of the distance between a state and its actions."""
    goal_coef: NonNegativeFloat = 1.0
    """Weight of the loss that sets the distance from a state to its achieved goal to 0."""
    diagonal_weight: Fraction = 0.5
    """Share of matching pairs in the backup; the rest is over all pairs of a batch."""
    linex_limit: NonNegativeFloat = 5.0
    """Excess of a distance over its backup above which the loss is linear."""
    distance_limit: NonNegativeFloat = 4.0
    """Largest distance that a backup continues from; goals beyond it count as out of reach."""


class MQE(OccupancyAlgorithm):
    """Distance learned by multistep backups from waypoints, without a contrastive loss."""

    Settings: ClassVar[type[AlgorithmSettings]] = MQESettings
    METRICS = (*OccupancyAlgorithm.METRICS, "backup_loss", "invariance_loss", "goal_loss")
    Network = StateCritic

    critic: StateCritic
    settings: MQESettings

    def __init__(self, dims: Dims, make_critic: CriticFactory, settings: MQESettings) -> None:
        """Build the networks; sample waypoints."""
        super().__init__(dims, make_critic, settings)
        self.trajectory_sampling = TrajectorySampling(
            settings.discount, settings.next_state_prob, settings.waypoint_decay
        )

    def critic_loss(self, batch: Batch, trajectory: Trajectory) -> tuple[Tensor, list[Tensor]]:
        """Return the sum of the three losses."""
        critic, settings, goal = self.critic, self.settings, trajectory.future_goal
        start, state = critic.embed(batch.state, batch.action), critic.psi(batch.state)
        with torch.no_grad():
            remaining = critic.pairs(critic.psi(trajectory.waypoint), goal)
            remaining.clamp_(max=settings.distance_limit)
        discount = self.discount ** trajectory.waypoint_steps.unsqueeze(1)  # (B, 1)
        backups = [
            linex_loss(critic.pairs(each, goal), remaining, discount, settings.linex_limit)
            for each in (start, state)
        ]
        backup = torch.stack([mean_of_pairs(each, settings.diagonal_weight) for each in backups])
        invariance = zero_cost_loss(critic.head(state, start))
        at_goal = zero_cost_loss(
            critic.achieved_goal_distance(batch.next_state, trajectory.achieved)
        )
        losses = [
            backup.mean(),
            settings.invariance_coef * invariance,
            settings.goal_coef * at_goal,
        ]
        return sum(losses[1:], losses[0]), losses
