"""Losses that shape a distance, as pure functions of tensors.

Matrices of all pairs have shape (B, B): rows are transitions and columns are goals. The goal of
column i was sampled from the future of transition i.
"""

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

Direction = Literal["forward", "backward", "symmetric"]


def info_nce_loss(logits: Tensor, direction: Direction, smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy of finding the matching pair i, i among the pairs of a batch.

    `forward` selects the goal of each transition: -mean_i (f_ii - log sum_j exp f_ij). `backward`
    selects the transition of each goal, with the sum over rows. `symmetric` is the mean of both
    (van den Oord et al. 2018, https://arxiv.org/abs/1807.03748).

    With label smoothing e, a pair matches with probability 1 - e, and any pair of its row or column
    does with probability e. A log ratio f = log r becomes log((1 - e) r + e), which is at least
    log e even where nothing leads to the goal.
    """
    if direction == "symmetric":
        forward, backward = (
            info_nce_loss(logits, each, smoothing) for each in ("forward", "backward")
        )
        return 0.5 * (forward + backward)
    axis = 1 if direction == "forward" else 0
    matching = torch.lerp(logits.diagonal(), logits.mean(dim=axis), smoothing)
    return (logits.logsumexp(dim=axis) - matching).mean()


def logsumexp_penalty(logits: Tensor) -> Tensor:
    """Return mean_i (log mean_j exp f_ij)^2, which fixes the offset that `forward` leaves open.

    It is 0 for a log ratio f = log p(g | s, a) / p(g), as the mean of the ratio over goals is 1.
    """
    return (logits.logsumexp(dim=1) - math.log(logits.shape[1])).square().mean()


def linex_loss(
    distance: Tensor, next_distance: Tensor, discount: Tensor | float, limit: float
) -> Tensor:
    """Return gamma exp(delta) - delta, delta = d - d', elementwise; delta alone above `limit`.

    The minimum is at d = d' - log gamma. Where d' is random, at exp(-d) = gamma E[exp(-d')]: the
    backup of a discounted occupancy. d' is treated as a constant. Above the limit, the slope is 1.
    (Myers et al. 2025, https://arxiv.org/abs/2509.20478.)
    """
    delta = distance - next_distance.detach()
    backup = discount * delta.clamp(max=limit).exp() - delta
    return torch.where(delta <= limit, backup, delta)


def mean_of_pairs(values: Tensor, diagonal_weight: float) -> Tensor:
    """Return the mean over all pairs (B, B), mixed with the mean over matching pairs."""
    return torch.lerp(values.mean(), values.diagonal().mean(), diagonal_weight)


def zero_cost_loss(distance: Tensor) -> Tensor:
    """Return mean (exp(-d) - 1)^2, which is 0 at d = 0, has no slope there, and is at most 1."""
    return torch.expm1(-distance).square().mean()


def push_loss(distance: Tensor, offset: float, softness: float) -> Tensor:
    """Return mean softplus(offset - d), which pushes pairs apart until about `offset`.

    softplus(x) = softness x log(1 + exp(x / softness)).
    """
    return F.softplus(offset - distance, beta=1 / softness).mean()


def violation(distance: Tensor, cost: float) -> Tensor:
    """Return mean relu(d - cost)^2, the violation of the constraint d <= cost."""
    return (distance - cost).relu().square().mean()
