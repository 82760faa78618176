"""Quasimetric RL (Wang et al. 2023, https://arxiv.org/abs/2304.01203).

The optimal number of steps is the largest quasimetric under which each transition costs at most
one step. QRL therefore maximizes the distance of random pairs under that constraint:

    max E[d(psi(s), h(g))]   subject to   d(psi(s), psi(s')) <= 1 for all transitions.

The push saturates near `push_offset`, so that no pair dominates. The constraint holds on average,
E[relu(d - 1)^2] <= slack^2, by a multiplier lambda that rises while it is violated. Distances are
in steps, without discount, bootstrapping or targets.

Goals have their own encoder h: reaching the achieved goal of s' costs nothing, a second constraint
d(psi(s'), h(g)) <= 0 with the same multiplier. The push applies to random states and random goals.
lambda starts at 1 instead of 0.01; otherwise h would first move away from all states at no cost.

The actor needs the distance after an action, so a model T(psi(s), a) predicts psi(s') in latent
space, and -Q = d(T(psi(s), a), h(g)).
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mrn.algorithms.adam import Adam
from mrn.algorithms.base import AlgorithmSettings, CriticFactory
from mrn.algorithms.distance_losses import push_loss, violation
from mrn.algorithms.embeddings import LatentModelCritic
from mrn.algorithms.quasimetric import QuasimetricAlgorithm, QuasimetricSettings
from mrn.batch import Batch, Trajectory, TrajectorySampling
from mrn.critics import Dims
from mrn.utils.validation import Bounds, NonNegativeFloat

INITIAL_MULTIPLIER = 1.0


@dataclass(frozen=True)
class QRLSettings(QuasimetricSettings):
    """Hyperparameters of QRL; those of the loss are the authors' for online learning."""

    push_offset: NonNegativeFloat = 15.0
    """Distance in steps beyond which random pairs are hardly pushed apart."""
    push_softness: Annotated[float, Bounds(ge=1e-3)] = 10.0
    """Width, in steps, of the range around the offset in which the push fades out."""
    slack: NonNegativeFloat = 0.25
    """Root mean square by which the distances of transitions may exceed their cost."""
    multiplier_learning_rate: NonNegativeFloat = 1e-2
    """Learning rate of Adam for the multiplier of the constraint."""
    dynamics_coef: NonNegativeFloat = 0.1
    """Weight of the latent transition model's loss."""


class QRL(QuasimetricAlgorithm):
    """Largest distance under which no transition costs more than one step."""

    Settings: ClassVar[type[AlgorithmSettings]] = QRLSettings
    METRICS = (
        *QuasimetricAlgorithm.METRICS,
        "push_loss",
        "violation",
        "dynamics_loss",
        "multiplier",
    )
    Network = LatentModelCritic
    trajectory_sampling = TrajectorySampling(discount=0.0)  # needs achieved goals alone

    critic: LatentModelCritic
    settings: QRLSettings

    def __init__(self, dims: Dims, make_critic: CriticFactory, settings: QRLSettings) -> None:
        """Build the networks of the base class and the multiplier."""
        super().__init__(dims, make_critic, settings)
        inverse_softplus = math.log(math.expm1(INITIAL_MULTIPLIER))
        self.raw_multiplier = nn.Parameter(torch.tensor(inverse_softplus))
        self.multiplier_optimizer = Adam([self.raw_multiplier], settings.multiplier_learning_rate)

    @property
    def optimizers(self) -> dict[str, Adam]:
        """Return the optimizers of the base class and that of the multiplier."""
        return super().optimizers | {"multiplier_optimizer": self.multiplier_optimizer}

    def critic_loss(self, batch: Batch, trajectory: Trajectory) -> tuple[Tensor, list[Tensor]]:
        """Return the Lagrangian plus the model's loss.

        The gradient of the multiplier is that of minus the Lagrangian: it ascends.
        """
        critic, settings = self.critic, self.settings
        state, next_state = critic.psi(batch.state), critic.psi(batch.next_state)
        achieved = critic.embed_goal(trajectory.achieved)
        apart = [critic.head(state, point.roll(1, dims=0)) for point in (next_state, achieved)]
        push = push_loss(torch.stack(apart), settings.push_offset, settings.push_softness)
        violated = violation(critic.head(state, next_state), 1.0)
        violated = violated + violation(critic.head(next_state, achieved), 0.0)
        multiplier = F.softplus(self.raw_multiplier)
        constraint = multiplier.detach() * violated
        dual = multiplier * (settings.slack**2 - violated.detach())
        predicted = critic.predict(state, batch.action)
        ways = critic.head(predicted, next_state), critic.head(next_state, predicted)
        dynamics = settings.dynamics_coef * torch.stack(ways).square().mean()
        loss = push + constraint + dynamics + dual
        return loss, [push, violated, dynamics, multiplier]
