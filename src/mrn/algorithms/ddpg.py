"""Deep deterministic policy gradient (Lillicrap et al. 2015, https://arxiv.org/abs/1509.02971).

Two changes are common for goal-reaching tasks. Rewards are -1 until the goal is reached, so the
value lies in [-1/(1 - gamma), 0] and targets are clipped to this range. The actor's loss penalizes
large actions.
"""

import warnings
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
from mrn.algorithms.targets import TargetSettings, TargetUpdater, make_target
from mrn.batch import Batch
from mrn.critics import Critic, Dims
from mrn.utils.validation import NonNegativeFloat, PositiveInt


@dataclass(frozen=True)
class DDPGSettings(NoiseSettings, TargetSettings, AlgorithmSettings):
    """Hyperparameters of DDPG; the defaults are the paper's (Sec. 5)."""

    policy_delay: PositiveInt = 1
    """Update the actor every N updates of the critic. In between, its optimizer pauses."""
    action_penalty: NonNegativeFloat = 1.0
    """Weight of the mean squared action in the actor's loss."""


class DDPG(Algorithm):
    """Actor trained by the gradient of a critic, which learns from slowly moving targets."""

    Settings: ClassVar[type[AlgorithmSettings]] = DDPGSettings
    METRICS: ClassVar[tuple[str, ...]] = ("critic_loss", "actor_loss", "mean_q")

    actor: Actor
    critic: Critic

    def __init__(self, dims: Dims, make_critic: CriticFactory, settings: DDPGSettings) -> None:
        """Build the networks and their targets."""
        super().__init__(dims, make_critic, settings)
        self.settings, self.discount = settings, settings.discount
        critic = make_critic()  # before the actor: the order fixes the initial weights
        self.actor, self.critic = Actor(dims, settings.hidden_dim), critic
        self.actor_target, self.critic_target = make_target(self.actor), make_target(self.critic)
        pairs = [(self.actor_target, self.actor), (self.critic_target, self.critic)]
        self.target_updater = TargetUpdater(settings, pairs)
        self._actor_weights: list[Tensor] = list(self.actor.parameters())
        # One optimizer for both networks: Adam treats each weight independently.
        weights = [*self._actor_weights, *self.critic.parameters()]
        self.optimizer = Adam(weights, settings.learning_rate)

    @property
    def optimizers(self) -> dict[str, Adam]:
        """Return the optimizer of both networks."""
        return {"optimizer": self.optimizer}

    def update(self, batch: Batch, update_step: int, generator: torch.Generator) -> Tensor:
        """Update the critic, and every `policy_delay` updates the actor; no random numbers.

        Between two updates of the actor, its weights and moments stay unchanged.
        """
        losses = self.compute_gradients(batch, update_step % self.settings.policy_delay == 0)
        self.optimizer.step()  # without gradients, the actor pauses
        self.target_updater.after_update(update_step)
        return losses

    def compute_gradients(self, batch: Batch, with_actor: bool = True) -> Tensor:
        """Set the gradients of both losses at the current weights; return `METRICS`."""
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
            policy_loss = self.policy_loss(batch, policy_action, policy_q)
            # `inputs` restricts the backward pass to the actor: it adds nothing to the critic's
            # gradients and does not go through the goal side again.
            policy_loss.backward(inputs=self._actor_weights)
            # Scaled so that the logged mean over all updates is the mean of the computed losses.
            policy_loss = policy_loss * self.settings.policy_delay
        return torch.stack([critic_loss, policy_loss, q.mean()]).detach()

    def policy_loss(self, batch: Batch, policy_action: Tensor, policy_q: Tensor) -> Tensor:
        """Return the loss of the actor, whose actions in the batch have these values."""
        return actor_loss(policy_q, policy_action, self.settings.action_penalty)

    def check_restored(self) -> None:
        """Warn about runs of versions that also stepped the actor between its updates."""
        actor_steps, critic_steps = self.optimizer.steps[0], self.optimizer.steps[-1]
        if self.settings.policy_delay > 1 and actor_steps == critic_steps > 0:
            warnings.warn(
                "this run was started by a version that stepped the actor on momentum between its "
                f"updates; with policy_delay {self.settings.policy_delay} the actor now pauses, so "
                "the results differ",
                stacklevel=2,
            )

    def end_cycle(self) -> None:
        """Update the target networks if `target_update_interval` is 0."""
        self.target_updater.after_cycle()

    def explorer(self, steps: int, num_envs: int, generator: torch.Generator) -> Explorer:
        """Return the actor with Gaussian noise and occasional uniform actions."""
        return add_noise(self.actor, self.settings, steps, num_envs, generator)
