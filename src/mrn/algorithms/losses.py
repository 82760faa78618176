"""Losses and targets as pure functions of tensors."""

import torch
from torch import Tensor


def bellman_target(reward: Tensor, terminated: Tensor, next_q: Tensor, discount: float) -> Tensor:
    """Return r + gamma Q(s', a', g), or r after termination, clipped to [-1/(1-gamma), 0]."""
    target = reward + discount * torch.where(terminated, 0, next_q)
    return target.clamp(-1 / (1 - discount), 0)


def actor_loss(q: Tensor, action: Tensor, penalty: float) -> Tensor:
    """Return mean(-Q) + penalty x mean(a^2), a in [-1, 1]."""
    return penalty * action.square().mean() - q.mean()


def smooth_action(action: Tensor, noise: Tensor, limit: float) -> Tensor:
    """Return the action plus noise clipped to +-limit; the sum is clipped to [-1, 1].

    Target policy smoothing (Fujimoto et al. 2018, Sec. 5.3, https://arxiv.org/abs/1802.09477).
    """
    return (action + noise.clamp(-limit, limit)).clamp(-1, 1)


def temperature_loss(log_temperature: Tensor, log_prob: Tensor, target_entropy: float) -> Tensor:
    """Return -alpha (mean log pi(a) + target_entropy), alpha = exp(log_temperature).

    log pi(a) is treated as a constant. The gradient raises alpha while the entropy of the policy,
    the mean of -log pi(a), is below its target (Haarnoja et al. 2018, Eq. 18,
    https://arxiv.org/abs/1812.05905).
    """
    return -log_temperature.exp() * (log_prob.detach().mean() + target_entropy)


def imitation_loss(policy_action: Tensor, action: Tensor, weight: Tensor) -> Tensor:
    """Return the mean of weight x mean_i (pi_i(s, g) - a_i)^2; weights have shape (B,).

    Up to constants, this is the weighted negative log-likelihood of the actions under a Gaussian
    policy with fixed variance.
    """
    return (weight * (policy_action - action).square().mean(dim=-1)).mean()
