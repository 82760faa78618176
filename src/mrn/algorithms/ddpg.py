"""Deep deterministic policy gradient (Lillicrap et al. 2015, https://arxiv.org/abs/1509.02971).

With the changes that are usual for goals: rewards of -1 until the goal bound the value by
-1/(1 - gamma) and 0, to which targets are clipped; and large actions cost the actor.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from mrn.algorithms.adam import Adam
from mrn.algorithms.base import Algorithm, AlgorithmSettings, CriticFactory
from mrn.algorithms.exploration import Explorer, NoiseSettings, add_noise
from mrn.algorithms.losses import actor_loss, bellman_target
from mrn.algorithms.networks import Actor
from mrn.algorithms.targets import Targets, TargetSettings, target_of
from mrn.batch import Batch
from mrn.critics import Critic, Dims
from mrn.utils.validation import NonNegativeFloat, PositiveInt


@dataclass(frozen=True)
class DDPGSettings(NoiseSettings, TargetSettings, AlgorithmSettings):
    """The hyper-parameters of DDPG; the defaults are the paper's (Sec. 5)."""

    policy_delay: PositiveInt = 1
    """Updates for each gradient of the actor; in the others it goes on by its momentum."""
    action_penalty: NonNegativeFloat = 1.0
    """Weight of the squared action in the actor's loss."""


class DDPG(Algorithm):
    """An actor that follows the gradient of a critic, which learns towards slow copies."""

    Settings: ClassVar[type[AlgorithmSettings]] = DDPGSettings
    METRICS = ("critic_loss", "actor_loss", "mean_q")

    actor: Actor
    critic: Critic

    def __init__(self, dims: Dims, make_critic: CriticFactory, settings: DDPGSettings) -> None:
        """Build the networks; both targets start as copies."""
        super().__init__(dims, make_critic, settings)
        self.settings, self.discount = settings, settings.discount
        critic = make_critic()  # before the actor: the order decides the initial weights
        self.actor, self.critic = Actor(dims, settings.hidden_dim), critic
        self.actor_target, self.critic_target = target_of(self.actor), target_of(self.critic)
        pairs = [(self.actor_target, self.actor), (self.critic_target, self.critic)]
        self.targets = Targets(settings, pairs)
        self._actor_weights: list[Tensor] = list(self.actor.parameters())
        # One optimiser steps both networks; Adam treats each weight by itself.
        weights = [*self._actor_weights, *self.critic.parameters()]
        self.optimizer = Adam(weights, settings.learning_rate)

    @property
    def optimizers(self) -> dict[str, Adam]:
        """One, for both networks."""
        return {"optimizer": self.optimizer}

    def update(self, batch: Batch, update_step: int, generator: torch.Generator) -> Tensor:
        """One step of both networks; nothing in it is random."""
        losses = self.compute_gradients(batch, update_step % self.settings.policy_delay == 0)
        self.optimizer.step()
        self.targets.after_update(update_step)
        return losses

    def compute_gradients(self, batch: Batch, with_actor: bool = True) -> Tensor:
        """Set the gradients of both losses, both at the current weights; returns `METRICS`."""
        state, action, goal = batch.state, batch.action, batch.goal
        with torch.no_grad():
            next_action = self.actor_target(batch.next_state, goal)
            next_q = self.critic_target(batch.next_state, next_action, goal)
            target = bellman_target(batch.reward, batch.terminated, next_q, self.discount)
        self.optimizer.zero_grad()
        goal_side = self.critic.goal_side(state, goal)  # shared by both losses
        q = self.critic.score(state, action, goal_side)
        critic_loss = F.mse_loss(q, target)
        critic_loss.backward()

        policy_loss = torch.zeros_like(critic_loss)
        if with_actor:
            policy_action = self.actor(state, goal)
            policy_q = self.critic.score(state, policy_action, goal_side)
            policy_loss = actor_loss(policy_q, policy_action, self.settings.action_penalty)
            # `inputs` confines the pass to the actor: the critic's weights get no gradient from
            # it, and the goal side is not walked through again.
            policy_loss.backward(inputs=self._actor_weights)
            policy_loss = policy_loss * self.settings.policy_delay  # its mean over many updates
        return torch.stack([critic_loss, policy_loss, q.mean()]).detach()

    def end_cycle(self) -> None:
        """Move the targets, unless they move between updates."""
        self.targets.after_cycle()

    def explorer(self, steps: int, num_envs: int, generator: torch.Generator) -> Explorer:
        """The actor with Gaussian noise, and now and then a uniform action."""
        return add_noise(self.actor, self.settings, steps, num_envs, generator)
