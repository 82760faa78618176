"""Deep deterministic policy gradient (Lillicrap et al. 2015, https://arxiv.org/abs/1509.02971).

With the changes that are usual for goals: rewards of -1 until the goal bound the value by
-1/(1 - gamma) and 0, to which targets are clipped; and large actions cost the actor.
"""

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mrn.agents.actor import Actor
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


class DDPG(nn.Module):
    """An actor, a critic, their targets and their optimiser."""

    METRICS = ("critic_loss", "actor_loss", "mean_q")

    def __init__(self, dims: Dims, critic: Critic, config: Learning) -> None:
        """Build the actor and the targets; both targets start as copies."""
        super().__init__()
        self.config = config
        self.actor, self.critic = Actor(dims, config.width), critic
        self.actor_target = copy.deepcopy(self.actor).requires_grad_(False)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self._actor_weights: list[Tensor] = list(self.actor.parameters())
        self._critic_weights: list[Tensor] = list(self.critic.parameters())
        targets = [*self.actor_target.parameters(), *self.critic_target.parameters()]
        self._target_weights: list[Tensor] = list(targets)
        # One optimiser steps both networks in one fused call; Adam treats each weight by itself.
        self.optimizer = torch.optim.Adam(
            [{"params": self._actor_weights}, {"params": self._critic_weights}],
            lr=config.learning_rate,
            fused=True,
        )

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
        goal_side = self.critic.goal_side(state, goal)  # shared by both losses
        q = self.critic.score(state, action, goal_side)
        critic_loss = F.mse_loss(q, target)
        policy_action = self.actor(state, goal)
        policy_q = self.critic.score(state, policy_action, goal_side)
        policy_loss = actor_loss(policy_q, policy_action, self.config.action_penalty)

        for weight in self._actor_weights + self._critic_weights:
            weight.grad = None
        # `inputs` confines each backward pass to the gradients asked for: none of the critic's
        # weights for the actor's loss, and nothing of the goal side is walked through twice.
        critic_loss.backward(inputs=self._critic_weights)
        policy_loss.backward(inputs=self._actor_weights)
        return torch.stack([critic_loss, policy_loss, q.mean()]).detach()

    @torch.no_grad()
    def update_targets(self) -> None:
        """Move the targets towards the networks, keeping a share of them."""
        learned = self._actor_weights + self._critic_weights
        torch._foreach_lerp_(self._target_weights, learned, 1 - self.config.target_keep)

    @torch.no_grad()
    def act(self, state: Tensor, goal: Tensor) -> Tensor:
        """The policy's actions."""
        return self.actor(state, goal)

    @torch.no_grad()
    def explore(self, state: Tensor, goal: Tensor, generator: torch.Generator) -> Tensor:
        """The policy's actions with Gaussian noise, and now and then a uniform one instead."""
        action = self.actor(state, goal)
        noise = torch.empty_like(action).normal_(0, self.config.noise, generator=generator)
        uniform = torch.empty_like(action).uniform_(-1, 1, generator=generator)
        dice = torch.empty_like(action[:, :1]).uniform_(0, 1, generator=generator)  # (B, 1)
        return torch.where(
            dice < self.config.random_actions, uniform, (action + noise).clamp(-1, 1)
        )
