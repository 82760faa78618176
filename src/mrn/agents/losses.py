"""What learners minimise: pure functions of tensors."""

import torch
from torch import Tensor


def bellman_target(reward: Tensor, terminated: Tensor, next_q: Tensor, discount: float) -> Tensor:
    """r + gamma Q(s', a', g), without the second term after a termination, in [-1/(1-gamma), 0]."""
    target = reward + discount * torch.where(terminated, 0, next_q)
    return target.clamp(-1 / (1 - discount), 0)


def actor_loss(q: Tensor, action: Tensor, penalty: float) -> Tensor:
    """-Q + penalty x mean(a^2), a in [-1, 1]."""
    return penalty * action.square().mean() - q.mean()
