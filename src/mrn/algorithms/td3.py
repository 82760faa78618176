"""Twin delayed DDPG (Fujimoto et al. 2018, https://arxiv.org/abs/1802.09477), for goals.

Three changes to DDPG against values that are too high: two critics, of which targets take the
lower one; noise on the targets' actions, so that a narrow peak of a critic counts for little; and
an actor and targets that move less often than the critics. Limits of the value and the penalty on
actions are those of DDPG here.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from mrn.algorithms.adam import Adam
from mrn.algorithms.base import AlgorithmSettings, CriticFactory
from mrn.algorithms.exploration import Explorer, NoiseSettings, add_noise, normal_like
from mrn.algorithms.losses import actor_loss, smoothed
from mrn.algorithms.networks import Actor
from mrn.algorithms.targets import Targets, TargetSettings, target_of
from mrn.algorithms.twin_critics import TwinCriticAlgorithm
from mrn.batch import Batch
from mrn.critics import Dims
from mrn.utils.validation import Fraction, NonNegativeFloat, NonNegativeInt, PositiveInt


@dataclass(frozen=True)
class TD3Settings(NoiseSettings, TargetSettings, AlgorithmSettings):
    """The hyper-parameters of TD3; what DDPG does not have is as TD3's authors chose it."""

    tau: Fraction = 0.005
    target_update_interval: NonNegativeInt = 2
    policy_delay: PositiveInt = 2
    """Updates of the critics for each one of the actor."""
    target_policy_noise: NonNegativeFloat = 0.2
    """Standard deviation of the noise on targets' actions, as a share of the largest action."""
    target_noise_clip: NonNegativeFloat = 0.5
    """Largest such noise."""
    action_penalty: NonNegativeFloat = 1.0
    """Weight of the squared action in the actor's loss."""


class TD3(TwinCriticAlgorithm):
    """DDPG with two critics, smoothed target actions, and a delayed actor and targets."""

    Settings: ClassVar[type[AlgorithmSettings]] = TD3Settings
    METRICS = ("critic_loss", "actor_loss", "mean_q")

    actor: Actor

    def __init__(self, dims: Dims, make_critic: CriticFactory, settings: TD3Settings) -> None:
        """Build the networks; targets start as copies."""
        super().__init__(dims, make_critic, settings)
        self.settings, self.discount = settings, settings.discount
        self.actor = Actor(dims, settings.hidden_dim)
        self.actor_target = target_of(self.actor)
        self.targets = Targets(settings, [(self.actor_target, self.actor), *self._critic_pairs])
        self._actor_weights: list[Tensor] = list(self.actor.parameters())
        # The actor is stepped less often: by an optimiser of its own, whose momentum waits with it.
        self.optimizer = Adam(self._critic_weights, settings.learning_rate)
        self.actor_optimizer = Adam(self._actor_weights, settings.learning_rate)

    @property
    def optimizers(self) -> dict[str, Adam]:
        """One for both critics, one for the actor."""
        return {"optimizer": self.optimizer, "actor_optimizer": self.actor_optimizer}

    def update(self, batch: Batch, update_step: int, generator: torch.Generator) -> Tensor:
        """One step of the critics; of the actor and the targets when it is their turn."""
        with_actor = update_step % self.settings.policy_delay == 0
        losses = self.compute_gradients(batch, with_actor, generator)
        self.optimizer.step()
        if with_actor:
            self.actor_optimizer.step()
        self.targets.after_update(update_step)
        return losses

    def compute_gradients(
        self, batch: Batch, with_actor: bool, generator: torch.Generator
    ) -> Tensor:
        """Set the gradients of the losses, all at the current weights; returns `METRICS`."""
        settings = self.settings
        with torch.no_grad():
            next_action = self.actor_target(batch.next_state, batch.goal)
            noise = settings.target_policy_noise * normal_like(next_action, generator)
            next_action = smoothed(next_action, noise, settings.target_noise_clip)
            target = self.target(batch, next_action)
        self.optimizer.zero_grad()
        critic_loss, mean_q, goal_side, _ = self.critic_gradients(batch, target)
        policy_loss = torch.zeros_like(critic_loss)
        if with_actor:
            self.actor_optimizer.zero_grad()
            action = self.actor(batch.state, batch.goal)
            q = self.critic.score(batch.state, action, goal_side)  # one critic is enough here
            policy_loss = actor_loss(q, action, settings.action_penalty)
            policy_loss.backward(inputs=self._actor_weights)
            policy_loss = (
                policy_loss * settings.policy_delay
            )  # so that the mean over updates is its
        return torch.stack([critic_loss, policy_loss, mean_q]).detach()

    def end_cycle(self) -> None:
        """Move the targets, unless they move between updates."""
        self.targets.after_cycle()

    def explorer(self, steps: int, num_envs: int, generator: torch.Generator) -> Explorer:
        """The actor with Gaussian noise, and now and then a uniform action."""
        return add_noise(self.actor, self.settings, steps, num_envs, generator)
