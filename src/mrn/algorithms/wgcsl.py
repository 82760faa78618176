"""Weighted goal-conditioned supervised learning (Yang et al. 2022, https://arxiv.org/abs/2202.04478).

GCSL with weighted transitions. The weight of a transition whose goal was achieved k steps later is
the product of three factors. A = r + gamma V(s', g) - V(s, g), with V(s, g) = Q(s, pi(s, g), g):

- gamma^k: discount distant goals.
- min(exp(A), 10): prefer actions that the critic rates above the policy's.
- 1 for the best advantages, 0.05 for the others. The best are those above a quantile of recent
  advantages. The quantile rises from 0 to 0.8 during training.

The actor learns by imitation alone, from all transitions relabeled. The critic learns from the same
transitions as in DDPG: a fraction `her_ratio` is relabeled, the others keep their original goal. So
do the authors (https://github.com/YangRui2015/AWGCSL).
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
from mrn.algorithms.targets import TargetSettings, TargetUpdater, make_target
from mrn.batch import Batch
from mrn.critics import Critic, Dims
from mrn.utils.validation import Fraction, NonNegativeFloat

ADVANTAGE_WINDOW = 50_000
"""Number of recent advantages that the quantile is taken from, rounded up to whole batches."""
REST_WEIGHT = 0.05
"""Weight of transitions whose advantage is not among the best."""
NO_ADVANTAGE = torch.finfo(torch.float32).max
"""Placeholder in the window for transitions that are not imitated."""


@dataclass(frozen=True)
class WGCSLSettings(NoiseSettings, TargetSettings, AlgorithmSettings):
    """Hyperparameters of WGCSL; weights and learning rate are those of the WGCSL authors."""

    learning_rate: NonNegativeFloat = 5e-4
    discount_weight: bool = True
    """Weight transitions whose goal was achieved k steps later by gamma^k."""
    advantage_clip: NonNegativeFloat = 10.0
    """Upper bound of the weight exp(advantage); 0 to disable this weight."""
    best_quantile: Fraction = 0.8
    """Final quantile of recent advantages above which a transition keeps its full weight; 0 to
    disable this weight."""
    best_growth: NonNegativeFloat = 1e-4
    """Increase of that quantile per update, from 0."""


class WGCSL(Algorithm):
    """GCSL weighted by the distance to the goal and by a critic's advantage."""

    Settings: ClassVar[type[AlgorithmSettings]] = WGCSLSettings
    METRICS = ("critic_loss", "imitation_loss", "mean_q", "mean_weight")
    uses_relabeled = True

    actor: Actor
    critic: Critic
    advantages: Tensor

    def __init__(self, dims: Dims, make_critic: CriticFactory, settings: WGCSLSettings) -> None:
        """Build the networks and their targets."""
        super().__init__(dims, make_critic, settings)
        self.settings, self.discount = settings, settings.discount
        self.critic, self.actor = make_critic(), Actor(dims, settings.hidden_dim)
        self.actor_target, self.critic_target = make_target(self.actor), make_target(self.critic)
        pairs = [(self.actor_target, self.actor), (self.critic_target, self.critic)]
        self.target_updater = TargetUpdater(settings, pairs)
        weights = [*self.actor.parameters(), *self.critic.parameters()]
        self.optimizer = Adam(weights, settings.learning_rate)
        batches = -(-ADVANTAGE_WINDOW // settings.batch_size)
        empty = torch.full((batches, settings.batch_size), NO_ADVANTAGE)
        self.register_buffer("advantages", empty)  # ring: update n writes row n % rows

    @property
    def optimizers(self) -> dict[str, Adam]:
        """Return the optimizer of both networks."""
        return {"optimizer": self.optimizer}

    def update(self, batch: Batch, update_step: int, generator: torch.Generator) -> Tensor:
        """Update both networks; uses no random numbers."""
        losses = self.compute_gradients(batch, update_step)
        self.optimizer.step()
        self.target_updater.after_update(update_step)
        return losses

    def compute_gradients(self, batch: Batch, update_step: int) -> Tensor:
        """Set the gradients of both losses at the current weights; return `METRICS`."""
        with torch.no_grad():
            next_action = self.actor_target(batch.next_state, batch.goal)
            next_q = self.critic_target(batch.next_state, next_action, batch.goal)
            target = bellman_target(batch.reward, batch.terminated, next_q, self.discount)
        self.optimizer.zero_grad()
        q = self.critic(batch.state, batch.action, batch.goal)
        critic_loss = F.mse_loss(q, target)

        relabeled = batch.relabeled
        assert relabeled is not None  # see `uses_relabeled`
        state, goal, next_state = relabeled.state, relabeled.goal, relabeled.next_state
        policy_action = self.actor(state, goal)
        with torch.no_grad():
            value = self.critic(state, policy_action, goal)
            next_value = self.critic(next_state, self.actor(next_state, goal), goal)
            next_value = torch.where(relabeled.terminated, 0, next_value)
            advantage = relabeled.reward + self.discount * next_value - value
            weight = self.weigh(advantage, relabeled.steps_to_goal, update_step)
        policy_loss = imitation_loss(policy_action, relabeled.action, weight)
        (critic_loss + policy_loss).backward()  # the losses share no weights
        return torch.stack([critic_loss, policy_loss, q.mean(), weight.mean()]).detach()

    def weigh(self, advantage: Tensor, steps: Tensor, update_step: int) -> Tensor:
        """Return the weight of each transition, shape (B,); 0 if its steps to the goal are unknown.

        They are unknown if the strategy `episode` selects an earlier goal. Adds the advantages of
        the imitated transitions to the window.
        """
        settings, known = self.settings, torch.isfinite(steps)
        weight = self.discount**steps if settings.discount_weight else known.to(steps.dtype)
        if settings.advantage_clip:
            weight = weight * advantage.exp().clamp(max=settings.advantage_clip)
        if settings.best_quantile:
            row = update_step % len(self.advantages)
            # With several ranks, each gets a part of the batch and fills a part of the row.
            self.advantages[row, : len(steps)] = torch.where(known, advantage, NO_ADVANTAGE)
            quantile = min(settings.best_growth * update_step, settings.best_quantile)
            best = advantage >= self.threshold(quantile)
            weight = torch.where(best, weight, REST_WEIGHT * weight)
        return weight

    def threshold(self, quantile: float) -> Tensor:
        """Return the smallest recent advantage that is not below the quantile.

        No advantage lies between it and the interpolated quantile.
        """
        recent = self.advantages.flatten()  # placeholders are the largest
        count = (recent < NO_ADVANTAGE).sum()
        rank = (quantile * (count.double() - 1) - 1e-9).ceil().clamp(min=0).long()
        return value_at_rank(recent, rank, sort=not recent.is_cpu)

    def end_cycle(self) -> None:
        """Update the target networks if `target_update_interval` is 0."""
        self.target_updater.after_cycle()

    def explorer(self, steps: int, num_envs: int, generator: torch.Generator) -> Explorer:
        """Return the actor with Gaussian noise and occasional uniform actions."""
        return add_noise(self.actor, self.settings, steps, num_envs, generator)


def value_at_rank(values: Tensor, rank: Tensor, sort: bool) -> Tensor:
    """Return the value of a rank from 0, shape (), by sorting or in a fifth of the time.

    The fast way reads the rank, so a GPU would have to wait for it.
    """
    if sort:
        return values.sort().values.index_select(0, rank.view(1)).squeeze(0)
    return values.kthvalue(int(rank) + 1).values
