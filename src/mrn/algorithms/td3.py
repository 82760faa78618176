"""Twin delayed DDPG (Fujimoto et al. 2018, https://arxiv.org/abs/1802.09477), for goals.

TD3 changes DDPG in three ways to reduce overestimation. Targets take the minimum of two critics.
Noise on the target actions smooths narrow peaks of a critic. The actor and the target networks are
updated less often than the critics. The clipped targets and the action penalty are those of DDPG.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from mrn.algorithms.adam import Adam
from mrn.algorithms.base import AlgorithmSettings, CriticFactory
from mrn.algorithms.exploration import Explorer, NoiseSettings, add_noise, normal_like
from mrn.algorithms.losses import actor_loss, smooth_action
from mrn.algorithms.networks import Actor
from mrn.algorithms.targets import TargetSettings, TargetUpdater, make_target
from mrn.algorithms.twin_critics import TwinCriticAlgorithm
from mrn.batch import Batch
from mrn.critics import Dims
from mrn.utils.validation import Fraction, NonNegativeFloat, NonNegativeInt, PositiveInt


@dataclass(frozen=True)
class TD3Settings(NoiseSettings, TargetSettings, AlgorithmSettings):
    """Hyperparameters of TD3; those that DDPG lacks have the values of the TD3 paper."""

    tau: Fraction = 0.005
    target_update_interval: NonNegativeInt = 2
    policy_delay: PositiveInt = 2
    """Update the actor every N updates of the critics. In between, its optimizer pauses."""
    target_policy_noise: NonNegativeFloat = 0.2
    """Standard deviation of the noise on target actions, relative to the largest action."""
    target_noise_clip: NonNegativeFloat = 0.5
    """Bound to which the noise on target actions is clipped."""
    action_penalty: NonNegativeFloat = 1.0
    """Weight of the mean squared action in the actor's loss."""


class TD3(TwinCriticAlgorithm):
    """DDPG with twin critics, target policy smoothing and delayed policy updates."""

    Settings: ClassVar[type[AlgorithmSettings]] = TD3Settings
    METRICS = ("critic_loss", "actor_loss", "mean_q")

    actor: Actor

    def __init__(self, dims: Dims, make_critic: CriticFactory, settings: TD3Settings) -> None:
        """Build the networks and their targets."""
        super().__init__(dims, make_critic, settings)
        self.settings, self.discount = settings, settings.discount
        self.actor = Actor(dims, settings.hidden_dim)
        self.actor_target = make_target(self.actor)
        self.target_updater = TargetUpdater(
            settings, [(self.actor_target, self.actor), *self._critic_pairs]
        )
        self._actor_weights: list[Tensor] = list(self.actor.parameters())
        # The actor has its own optimizer, so that its moments pause between its updates.
        self.optimizer = Adam(self._critic_weights, settings.learning_rate)
        self.actor_optimizer = Adam(self._actor_weights, settings.learning_rate)

    @property
    def optimizers(self) -> dict[str, Adam]:
        """Return the optimizer of both critics and that of the actor."""
        return {"optimizer": self.optimizer, "actor_optimizer": self.actor_optimizer}

    def update(self, batch: Batch, update_step: int, generator: torch.Generator) -> Tensor:
        """Update the critics, and every `policy_delay` updates the actor.

        Between two updates of the actor, its weights and moments stay unchanged.
        """
        with_actor = update_step % self.settings.policy_delay == 0
        losses = self.compute_gradients(batch, with_actor, generator)
        self.optimizer.step()
        if with_actor:
            self.actor_optimizer.step()
        self.target_updater.after_update(update_step)
        return losses

    def compute_gradients(
        self, batch: Batch, with_actor: bool, generator: torch.Generator
    ) -> Tensor:
        """Set the gradients of all losses at the current weights; return `METRICS`."""
        settings = self.settings
        with torch.no_grad():
            next_action = self.actor_target(batch.next_state, batch.goal)
            noise = settings.target_policy_noise * normal_like(next_action, generator)
            next_action = smooth_action(next_action, noise, settings.target_noise_clip)
            target = self.target(batch, next_action)
        self.optimizer.zero_grad()
        critic_loss, mean_q, goal_side, _ = self.critic_gradients(batch, target)
        policy_loss = torch.zeros_like(critic_loss)
        if with_actor:
            self.actor_optimizer.zero_grad()
            action = self.actor(batch.state, batch.goal)
            q = self.critic.score(batch.state, action, goal_side)  # one critic, as in the paper
            policy_loss = actor_loss(q, action, settings.action_penalty)
            policy_loss.backward(inputs=self._actor_weights)
            # Scaled so that the logged mean over all updates is the mean of the computed losses.
            policy_loss = policy_loss * settings.policy_delay
        return torch.stack([critic_loss, policy_loss, mean_q]).detach()

    def end_cycle(self) -> None:
        """Update the target networks if `target_update_interval` is 0."""
        self.target_updater.after_cycle()

    def explorer(self, steps: int, num_envs: int, generator: torch.Generator) -> Explorer:
        """Return the actor with Gaussian noise and occasional uniform actions."""
        return add_noise(self.actor, self.settings, steps, num_envs, generator)
