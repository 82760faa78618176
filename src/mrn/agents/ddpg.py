"""Deep deterministic policy gradient (Lillicrap et al. 2015, https://arxiv.org/abs/1509.02971).

With the changes that are usual for goals: rewards of -1 until the goal bound the value by
-1/(1 - gamma) and 0, to which targets are clipped; and large actions cost the actor.
"""

import copy
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mrn.agents.actor import Actor
from mrn.agents.adam import Adam
from mrn.batch import Batch
from mrn.config import Learning
from mrn.critics import Critic, Dims


def bellman_target(reward: Tensor, terminated: Tensor, next_q: Tensor, discount: float) -> Tensor:
    """r + gamma Q(s', a', g), without the second term after a termination, in [-1/(1-gamma), 0]."""
    target = reward + discount * torch.where(terminated, 0, next_q)
    return target.clamp(-1 / (1 - discount), 0)


def actor_loss(q: Tensor, action: Tensor, penalty: float) -> Tensor:
    """-Q + penalty x mean(a^2), a in [-1, 1]."""
    return penalty * action.square().mean() - q.mean()


class Noise(NamedTuple):
    """Exploring actions are keep x policy's action + offset, clipped; keep is 0 or 1."""

    keep: Tensor  # (..., 1)
    offset: Tensor  # (..., action)


class DDPG(nn.Module):
    """An actor, a critic, their targets and their optimiser."""

    METRICS = ("critic_loss", "actor_loss", "mean_q")

    def __init__(self, dims: Dims, critic: Critic, config: Learning) -> None:
        """Build the actor and the targets; both targets start as copies."""
        super().__init__()
        self.config = config
        device = next(critic.parameters()).device
        self.actor, self.critic = Actor(dims, config.width).to(device), critic
        self.actor_target = copy.deepcopy(self.actor).requires_grad_(False)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self._actor_weights: list[Tensor] = list(self.actor.parameters())
        self._learned: list[Tensor] = [*self._actor_weights, *self.critic.parameters()]
        self._targets: list[Tensor] = [
            *self.actor_target.parameters(),
            *self.critic_target.parameters(),
        ]
        # One optimiser steps both networks; Adam treats each weight by itself.
        self.optimizer = Adam(self._learned, config.learning_rate)

    def update(self, batch: Batch) -> Tensor:
        """One step of both networks; returns `METRICS`, shape (3,), without waiting for them."""
        losses = self.compute_gradients(batch)
        self.optimizer.step()
        return losses

    def compute_gradients(self, batch: Batch) -> Tensor:
        """Set the gradients of both losses, both at the current weights."""
        state, action, goal = batch.state, batch.action, batch.goal
        with torch.no_grad():
            next_action = self.actor_target(batch.next_state, goal)
            next_q = self.critic_target(batch.next_state, next_action, goal)
            target = bellman_target(batch.reward, batch.terminated, next_q, self.config.discount)
        self.optimizer.zero_grad()
        goal_side = self.critic.goal_side(state, goal)  # shared by both losses
        q = self.critic.score(state, action, goal_side)
        critic_loss = F.mse_loss(q, target)
        critic_loss.backward()

        policy_action = self.actor(state, goal)
        policy_q = self.critic.score(state, policy_action, goal_side)
        policy_loss = actor_loss(policy_q, policy_action, self.config.action_penalty)
        # `inputs` confines the pass to the actor: the critic's weights get no gradient from it,
        # and the goal side is not walked through again.
        policy_loss.backward(inputs=self._actor_weights)
        return torch.stack([critic_loss, policy_loss, q.mean()]).detach()

    @torch.no_grad()
    def update_targets(self) -> None:
        """Move the targets towards the networks, keeping a share of them."""
        torch._foreach_lerp_(self._targets, self._learned, 1 - self.config.target_keep)

    @torch.no_grad()
    def act(self, state: Tensor, goal: Tensor) -> Tensor:
        """The policy's actions."""
        return self.actor(state, goal)

    def draw_noise(self, *shape: int, generator: torch.Generator) -> Noise:
        """What `explore` needs, for a block of steps at once: Gaussian, or now and then uniform."""
        actions = (*shape, self.actor.action_dim)
        gaussian = torch.randn(actions, generator=generator, device=generator.device)
        uniform = torch.rand(actions, generator=generator, device=generator.device) * 2 - 1
        dice = torch.rand((*shape, 1), generator=generator, device=generator.device)
        random = dice < self.config.random_actions  # (..., 1)
        keep = (~random).to(gaussian.dtype)
        return Noise(keep, torch.where(random, uniform, self.config.noise * gaussian))

    @torch.no_grad()
    def explore(self, state: Tensor, goal: Tensor, noise: Noise) -> Tensor:
        """The policy's actions with noise."""
        return torch.addcmul(noise.offset, self.actor(state, goal), noise.keep).clamp_(-1, 1)
