"""Weighted goal-conditioned supervised learning (Yang et al. 2022, https://arxiv.org/abs/2202.04478).

GCSL that prefers what is better to imitate. A transition whose goal was achieved k steps later has
the product of three weights, with A = r + gamma V(s', g) - V(s, g), V(s, g) = Q(s, pi(s, g), g):

- gamma^k: near goals tell more of how to get there;
- exp(A), at most 10: by the critic, the action was better than the policy's;
- 1 for the best advantages, 0.05 for the others. Who is best becomes stricter in training: above a
  quantile of recent advantages that rises from 0 to 0.8.

The critic learns as DDPG's does, from all transitions; the actor learns by imitation alone.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from mrn.algorithms.adam import Adam
from mrn.algorithms.base import Algorithm, AlgorithmSettings, CriticFactory
from mrn.algorithms.exploration import Explorer, NoiseSettings, add_noise
from mrn.algorithms.losses import bellman_target, imitation_loss
from mrn.algorithms.networks import Actor
from mrn.algorithms.targets import Targets, TargetSettings, target_of
from mrn.batch import Batch
from mrn.critics import Critic, Dims
from mrn.utils.validation import Fraction, NonNegativeFloat

RECENT = 50_000
"""Transitions among whose advantages the best are found, about: whole batches."""
OTHERS = 0.05
"""Weight of those that are not among the best."""
UNKNOWN = torch.finfo(torch.float32).max
"""Stands in a batch of advantages for those of transitions that are not imitated."""


@dataclass(frozen=True)
class WGCSLSettings(NoiseSettings, TargetSettings, AlgorithmSettings):
    """The hyper-parameters of WGCSL; the weights are as its authors chose them."""

    discount_weight: bool = True
    """Whether a transition whose goal was achieved k steps later is weighted by gamma^k."""
    advantage_clip: NonNegativeFloat = 10.0
    """Largest weight by the exponential of the advantage; 0 to do without this weight."""
    best_quantile: Fraction = 0.8
    """Fraction of recent advantages that are, in the end, not among the best; 0 to do without this
    weight."""
    best_growth: NonNegativeFloat = 1e-4
    """Growth of that share in each update, from 0."""


class WGCSL(Algorithm):
    """GCSL weighted by the distance of the goal and by the advantage of a critic."""

    Settings: ClassVar[type[AlgorithmSettings]] = WGCSLSettings
    METRICS = ("critic_loss", "imitation_loss", "mean_q", "mean_weight")

    actor: Actor
    critic: Critic
    advantages: Tensor

    def __init__(self, dims: Dims, make_critic: CriticFactory, settings: WGCSLSettings) -> None:
        """Build the networks; both targets start as copies."""
        super().__init__(dims, make_critic, settings)
        self.settings, self.discount = settings, settings.discount
        self.critic, self.actor = make_critic(), Actor(dims, settings.hidden_dim)
        self.actor_target, self.critic_target = target_of(self.actor), target_of(self.critic)
        pairs = [(self.actor_target, self.actor), (self.critic_target, self.critic)]
        self.targets = Targets(settings, pairs)
        weights = [*self.actor.parameters(), *self.critic.parameters()]
        self.optimizer = Adam(weights, settings.learning_rate)
        batches = -(-RECENT // settings.batch_size)
        empty = torch.full((batches, settings.batch_size), UNKNOWN)
        self.register_buffer("advantages", empty)  # a ring: update n writes row n modulo its size

    @property
    def optimizers(self) -> dict[str, Adam]:
        """One, for both networks."""
        return {"optimizer": self.optimizer}

    def update(self, batch: Batch, update_step: int, generator: torch.Generator) -> Tensor:
        """One step of both networks; nothing in it is random."""
        losses = self.compute_gradients(batch, update_step)
        self.optimizer.step()
        self.targets.after_update(update_step)
        return losses

    def compute_gradients(self, batch: Batch, update_step: int) -> Tensor:
        """Set the gradients of both losses, both at the current weights; returns `METRICS`."""
        state, goal, next_state = batch.state, batch.goal, batch.next_state
        with torch.no_grad():
            next_q = self.critic_target(next_state, self.actor_target(next_state, goal), goal)
            target = bellman_target(batch.reward, batch.terminated, next_q, self.discount)
        self.optimizer.zero_grad()
        goal_side = self.critic.goal_side(state, goal)  # of Q and of V
        q = self.critic.score(state, batch.action, goal_side)
        critic_loss = F.mse_loss(q, target)
        policy_action = self.actor(state, goal)
        with torch.no_grad():
            value = self.critic.score(state, policy_action, goal_side)
            next_value = self.critic(next_state, self.actor(next_state, goal), goal)
            next_value = torch.where(batch.terminated, 0, next_value)
            advantage = batch.reward + self.discount * next_value - value
            weight = self.weigh(advantage, batch.steps_to_goal, update_step)
        policy_loss = imitation_loss(policy_action, batch.action, weight)
        (critic_loss + policy_loss).backward()  # which share no weights
        return torch.stack([critic_loss, policy_loss, q.mean(), weight.mean()]).detach()

    def weigh(self, advantage: Tensor, steps: Tensor, update_step: int) -> Tensor:
        """The weight of each transition, shape (B,), 0 where it is not known how far the goal was.

        Remembers the advantages of the others.
        """
        settings, known = self.settings, torch.isfinite(steps)
        weight = self.discount**steps if settings.discount_weight else known.to(steps.dtype)
        if settings.advantage_clip:
            weight = weight * advantage.exp().clamp(max=settings.advantage_clip)
        if settings.best_quantile:
            row = update_step % len(self.advantages)
            # One of many processes gets a part of a batch, and fills a part of the row.
            self.advantages[row, : len(steps)] = torch.where(known, advantage, UNKNOWN)
            recent = self.advantages.masked_fill(self.advantages == UNKNOWN, torch.nan)
            share = min(settings.best_growth * update_step, settings.best_quantile)
            best = advantage >= recent.nanquantile(share)
            weight = torch.where(best, weight, OTHERS * weight)
        return weight

    def end_cycle(self) -> None:
        """Move the targets, unless they move between updates."""
        self.targets.after_cycle()

    def explorer(self, steps: int, num_envs: int, generator: torch.Generator) -> Explorer:
        """The actor with Gaussian noise, and now and then a uniform action."""
        return add_noise(self.actor, self.settings, steps, num_envs, generator)
