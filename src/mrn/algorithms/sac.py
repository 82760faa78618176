"""Soft actor-critic (Haarnoja et al. 2018, https://arxiv.org/abs/1812.05905), for goals.

A stochastic policy maximizes return plus entropy, weighted by a learned temperature alpha. This
version differs from the paper in one point: the value contains no entropy. Rewards of -1 until the
goal bound the value by -1/(1 - gamma) and 0. Targets are clipped to this range, and metric critics
cannot exceed 0 by construction, so an entropy bonus would leave the range.

Here Q(s, a, g) is the plain value of the stochastic policy: minus the expected discounted number of
steps to the goal. The actor minimizes alpha log pi(a | s, g) - Q(s, a, g). The policy therefore
trades the entropy of the current action against the steps it costs. It does not seek states in
which it could be more random later. -Q remains a distance that can be inspected.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from mrn.algorithms.adam import Adam
from mrn.algorithms.base import AlgorithmSettings, CriticFactory
from mrn.algorithms.entropy import EntropySettings, sample_policy
from mrn.algorithms.exploration import Explorer, normal_like
from mrn.algorithms.losses import actor_loss, temperature_loss
from mrn.algorithms.networks import GaussianActor
from mrn.algorithms.targets import TargetSettings, TargetUpdater
from mrn.algorithms.twin_critics import TwinCriticAlgorithm
from mrn.batch import Batch
from mrn.critics import Dims
from mrn.utils.validation import Fraction, NonNegativeFloat, NonNegativeInt


@dataclass(frozen=True)
class SACSettings(EntropySettings, TargetSettings, AlgorithmSettings):
    """Hyperparameters of SAC; the target updates are those of the SAC paper."""

    tau: Fraction = 0.005
    target_update_interval: NonNegativeInt = 1
    action_penalty: NonNegativeFloat = 0.0
    """Weight of the mean squared action in the actor's loss."""


class SAC(TwinCriticAlgorithm):
    """Stochastic policy with a learned temperature and twin critics."""

    Settings: ClassVar[type[AlgorithmSettings]] = SACSettings
    METRICS = ("critic_loss", "actor_loss", "mean_q", "entropy", "ent_coef")

    actor: GaussianActor

    def __init__(self, dims: Dims, make_critic: CriticFactory, settings: SACSettings) -> None:
        """Build the networks, the targets and the temperature."""
        super().__init__(dims, make_critic, settings)
        self.settings, self.discount = settings, settings.discount
        self.actor = GaussianActor(dims, settings.hidden_dim)
        self.target_updater = TargetUpdater(settings, self._critic_pairs)
        self.log_temperature = nn.Parameter(torch.tensor(math.log(settings.ent_coef)))
        self.target_entropy = settings.target_entropy * dims.action
        self._actor_weights: list[Tensor] = list(self.actor.parameters())
        # One optimizer for all networks: Adam treats each weight independently.
        networks = [*self._actor_weights, *self._critic_weights]
        self.optimizer = Adam(networks, settings.learning_rate)
        self.temperature_optimizer = Adam([self.log_temperature], settings.learning_rate)

    @property
    def optimizers(self) -> dict[str, Adam]:
        """Return the optimizer of all networks and that of the temperature."""
        return {"optimizer": self.optimizer, "temperature_optimizer": self.temperature_optimizer}

    def update(self, batch: Batch, update_step: int, generator: torch.Generator) -> Tensor:
        """Update all networks and the temperature."""
        losses = self.compute_gradients(batch, generator)
        for optimizer in self.optimizers.values():
            optimizer.step()
        self.target_updater.after_update(update_step)
        return losses

    def compute_gradients(self, batch: Batch, generator: torch.Generator) -> Tensor:
        """Set the gradients of all losses at the current weights; return `METRICS`."""
        state, goal = batch.state, batch.goal
        noise = normal_like(batch.action.expand(2, -1, -1), generator)  # (2, B, action)
        with torch.no_grad():
            next_action, _ = self.actor.sample(batch.next_state, goal, noise[0])
            target = self.target(batch, next_action)
            temperature = self.log_temperature.exp()
        for optimizer in self.optimizers.values():
            optimizer.zero_grad()
        critic_loss, mean_q, side, twin_side = self.critic_gradients(batch, target)

        action, log_prob = self.actor.sample(state, goal, noise[1])
        q = self.critic.score(state, action, side)
        q = torch.minimum(q, self.twin.score(state, action, twin_side))
        policy_loss = actor_loss(q, action, self.settings.action_penalty)
        policy_loss = policy_loss + temperature * log_prob.mean()
        policy_loss.backward(inputs=self._actor_weights)
        temperature_loss(self.log_temperature, log_prob, self.target_entropy).backward()
        metrics = [critic_loss, policy_loss, mean_q, -log_prob.mean(), temperature]
        return torch.stack(metrics).detach()

    def end_cycle(self) -> None:
        """Update the target networks if `target_update_interval` is 0."""
        self.target_updater.after_cycle()

    def explorer(self, steps: int, num_envs: int, generator: torch.Generator) -> Explorer:
        """Return the stochastic policy itself; the noise of all steps is drawn in advance."""
        return sample_policy(self.actor, steps, num_envs, generator)
