"""What algorithms minimise: pure functions of tensors."""

import torch
from torch import Tensor


def bellman_target(reward: Tensor, terminated: Tensor, next_q: Tensor, discount: float) -> Tensor:
    """r + gamma Q(s', a', g), without the second term after a termination, in [-1/(1-gamma), 0]."""
    target = reward + discount * torch.where(terminated, 0, next_q)
    return target.clamp(-1 / (1 - discount), 0)


def actor_loss(q: Tensor, action: Tensor, penalty: float) -> Tensor:
    """-Q + penalty x mean(a^2), a in [-1, 1]."""
    return penalty * action.square().mean() - q.mean()


def smoothed(action: Tensor, noise: Tensor, limit: float) -> Tensor:
    """The action with noise that is clipped to +-limit, itself clipped to [-1, 1].

    Smoothing of a target policy (Fujimoto et al. 2018, Sec. 5.3, https://arxiv.org/abs/1802.09477).
    """
    return (action + noise.clamp(-limit, limit)).clamp(-1, 1)


def temperature_loss(log_temperature: Tensor, log_prob: Tensor, entropy: float) -> Tensor:
    """-alpha (log pi(a) + entropy), alpha = exp(log_temperature); log pi(a) counts as a constant.

    Its gradient raises the temperature while the policy's entropy, the mean of -log pi(a), is below
    the given one (Haarnoja et al. 2018, Eq. 18, https://arxiv.org/abs/1812.05905).
    """
    return -log_temperature.exp() * (log_prob.detach().mean() + entropy)


def imitation_loss(policy_action: Tensor, action: Tensor, weight: Tensor) -> Tensor:
    """Mean of weight x mean_i (pi_i(s, g) - a_i)^2; weights have shape (B,).

    Up to constants, minus the weighted log-likelihood of the actions for a Gaussian policy of fixed
    width.
    """
    return (weight * (policy_action - action).square().mean(dim=-1)).mean()
