"""Interface of heads, and building blocks that several heads share."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mrn.critics.base import mlp


class Head(nn.Module, ABC):
    """Abstract base class of distances d(x, y) >= 0 between projected embeddings.

    Leading axes broadcast.
    """

    is_quasimetric: ClassVar[bool]
    """Whether d is a quasipseudometric for all weights: d(x, x) = 0 and
    d(x, z) <= d(x, y) + d(y, z)."""

    @abstractmethod
    def project(self, x: Tensor) -> Any:
        """Return the projection of x, shape (B, inputs)."""

    @abstractmethod
    def distance(self, from_: Any, to: Any) -> Tensor:
        """Return d(x, y), shape (B,), from the projections of x and y."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Return d(x, y), shape (B,)."""
        return self.distance(self.project(x), self.project(y))

    def pairs(self, x: Tensor, y: Tensor) -> Tensor:
        """Return d(x_i, y_j), shape (B, C), for x of shape (B, inputs) and y of (C, inputs)."""
        return self.forward(x.unsqueeze(1), y.unsqueeze(0))

    def extra_repr(self) -> str:
        """Show in `repr` whether the head is a quasimetric."""
        return f"is_quasimetric={self.is_quasimetric}"


class ProjectedHead(Head):
    """Head whose projection is an MLP with one hidden layer, shared by x and y."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        """Build the projection inputs - hidden - outputs."""
        super().__init__()
        self.projection = mlp([inputs, hidden, outputs])

    def project(self, x: Tensor) -> Tensor:
        """Return the projection of x, shape (B, outputs)."""
        return self.projection(x)


class Concave(nn.Module):
    """Learned concave, increasing function per feature with f(0) = 0, for inputs v >= 0.

    f(v) = min_k (m_k v + b_k), with slopes m_k in (0, 2) and offsets b_k > 0 for all pieces but the
    last, whose offset is 0. The composition with a norm satisfies the triangle inequality.
    """

    def __init__(self, features: int, pieces: int = 8) -> None:
        """Start near the identity: slopes are near 1 and the piece without offset is the lowest."""
        # Scaled in place for fast startup: see `make_critic`.
        super().__init__()
        self.slope = nn.Parameter(torch.randn(features, pieces).mul_(1e-3))
        self.offset = nn.Parameter(torch.randn(features, pieces - 1).mul_(1e-3).sub_(1))

    def forward(self, v: Tensor) -> Tensor:
        """Return f(v), shape (B, features)."""
        slope = 2 * torch.sigmoid(self.slope)  # (features, pieces)
        offset = F.pad(F.softplus(self.offset), (0, 1))  # (features, pieces), 0 for the last
        return torch.addcmul(offset, v.unsqueeze(-1), slope).amin(dim=-1)  # (B, features)


class MaxMean(nn.Module):
    """Reduction a max_k v_k + (1 - a) mean_k v_k with a learned a, initially sigmoid(-1)."""

    def __init__(self) -> None:
        """Create the logit of a."""
        super().__init__()
        self.share = nn.Parameter(torch.tensor(-1.0))

    def forward(self, v: Tensor) -> Tensor:
        """Reduce v of shape (B, components) to (B,)."""
        a = torch.sigmoid(self.share)
        return a * v.amax(dim=-1) + (1 - a) * v.mean(dim=-1)


class Mean(nn.Module):
    """Reduction mean_k v_k."""

    def forward(self, v: Tensor) -> Tensor:
        """Reduce v of shape (B, components) to (B,)."""
        return v.mean(dim=-1)


def non_negative(weight: Tensor) -> Tensor:
    """Return w^2: weights of a monotone layer, non-negative after any gradient step."""
    return weight.square()


def non_negative_capped(weight: Tensor) -> Tensor:
    """Return min(w^2, |w|): as `non_negative`, with a gradient of at most 2."""
    return torch.minimum(weight.square(), weight.abs())


def reset_as_linear(weight: Tensor) -> None:
    """Reinitialize weights of shape (outputs, inputs) as PyTorch's linear layers do."""
    bound = weight.shape[-1] ** -0.5
    nn.init.uniform_(weight, -bound, bound)
