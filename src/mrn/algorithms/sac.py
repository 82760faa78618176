"""Soft actor-critic (Haarnoja et al. 2018, https://arxiv.org/abs/1812.05905), for goals.

A random policy that is rewarded for its entropy, by a temperature alpha that is learned. One thing
is not as in the paper. There the value counts the entropy of all steps to come; but rewards of -1
until the goal bound a value by -1/(1 - gamma) and 0, metric critics cannot exceed 0 whatever their
weights, and targets are clipped to these bounds. A bonus for entropy lies outside of them. So here
Q(s, a, g) is the plain value of the random policy, minus the expected discounted number of steps to
the goal, and the actor minimises alpha log pi(a | s, g) - Q(s, a, g). What is learned is therefore
a policy that trades the entropy of each single action for the steps that it costs, and does not
seek states in which it could be more random later. -Q remains a distance that can be inspected.
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from mrn.algorithms.adam import Adam
from mrn.algorithms.base import AlgorithmSettings, CriticFactory
from mrn.algorithms.exploration import Explorer, normal_like
from mrn.algorithms.losses import actor_loss, temperature_loss
from mrn.algorithms.networks import GaussianActor
from mrn.algorithms.targets import Targets, TargetSettings
from mrn.algorithms.twin_critics import TwinCriticAlgorithm
from mrn.batch import Batch
from mrn.critics import Dims
from mrn.utils.validation import Bounds, Fraction, NonNegativeFloat, NonNegativeInt


@dataclass(frozen=True)
class SACSettings(TargetSettings, AlgorithmSettings):
    """The hyper-parameters of SAC; its targets move as its authors' do."""

    tau: Fraction = 0.005
    target_update_interval: NonNegativeInt = 1
    ent_coef: Annotated[float, Bounds(ge=1e-6)] = 0.2
    """Weight of the entropy in the actor's loss at the start, from which it is learned."""
    target_entropy: float = -1.0
    """What the temperature keeps the policy's entropy at, per dimension of the action; the most
    that is possible, of uniform actions, is log 2 = 0.69."""
    action_penalty: NonNegativeFloat = 0.0
    """Weight of the squared action in the actor's loss."""


class SAC(TwinCriticAlgorithm):
    """A random policy, rewarded for entropy by a learned temperature, and two critics."""

    Settings: ClassVar[type[AlgorithmSettings]] = SACSettings
    METRICS = ("critic_loss", "actor_loss", "mean_q", "entropy", "ent_coef")

    actor: GaussianActor

    def __init__(self, dims: Dims, make_critic: CriticFactory, settings: SACSettings) -> None:
        """Build the networks; targets start as copies."""
        super().__init__(dims, make_critic, settings)
        self.settings, self.discount = settings, settings.discount
        self.actor = GaussianActor(dims, settings.hidden_dim)
        self.targets = Targets(settings, self._critic_pairs)
        self.log_temperature = nn.Parameter(torch.tensor(math.log(settings.ent_coef)))
        self.target_entropy = settings.target_entropy * dims.action
        self._actor_weights: list[Tensor] = list(self.actor.parameters())
        # One optimiser steps all networks; Adam treats each weight by itself.
        networks = [*self._actor_weights, *self._critic_weights]
        self.optimizer = Adam(networks, settings.learning_rate)
        self.temperature_optimizer = Adam([self.log_temperature], settings.learning_rate)

    @property
    def optimizers(self) -> dict[str, Adam]:
        """One for all networks, one for the temperature."""
        return {"optimizer": self.optimizer, "temperature_optimizer": self.temperature_optimizer}

    def update(self, batch: Batch, update_step: int, generator: torch.Generator) -> Tensor:
        """One step of all networks and of the temperature."""
        losses = self.compute_gradients(batch, generator)
        for optimizer in self.optimizers.values():
            optimizer.step()
        self.targets.after_update(update_step)
        return losses

    def compute_gradients(self, batch: Batch, generator: torch.Generator) -> Tensor:
        """Set the gradients of the losses, all at the current weights; returns `METRICS`."""
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
        """Move the targets, unless they move between updates."""
        self.targets.after_cycle()

    def explorer(self, steps: int, num_envs: int, generator: torch.Generator) -> Explorer:
        """The random policy itself; the noise of all steps is drawn at once."""
        shape = (steps, num_envs, self.actor.action_dim)
        noise = iter(torch.randn(shape, generator=generator, device=generator.device))

        @torch.no_grad()
        def explore(state: Tensor, goal: Tensor) -> Tensor:
            return self.actor.sample(state, goal, next(noise))[0]

        return explore
