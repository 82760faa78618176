"""Wide Norm (WN): many Mahalanobis-like norms of the difference, reduced by max and mean."""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mrn.critics.base import safe_norm
from mrn.critics.heads.base import (
    Concave,
    MaxMean,
    Mean,
    ProjectedHead,
    non_negative,
    non_negative_capped,
    reset_as_linear,
)
from mrn.critics.heads.mrn import EMBEDDING_DIM

COMPONENT_DIM = 16


class WideNorm(ProjectedHead):
    """Head d(x, y) = maxmean_k c_k(|W_k [relu d, relu -d]|_2), W >= 0, d = p(x) - p(y).

    Pitis et al. 2020, "An inductive bias for distances" (https://arxiv.org/abs/2002.05825).
    A quasipseudometric by construction: each component is an asymmetric norm of d (monotone in
    the non-negative parts), and each c_k is concave, increasing and 0 at 0. The distance depends on
    d alone.
    """

    is_quasimetric: ClassVar[bool] = True
    reduction: ClassVar[type[nn.Module]] = MaxMean

    def __init__(self, inputs: int, hidden: int, components: int) -> None:
        """Build the given number of components with 16 values each.

        Initial distances have the scale of MRN's, so that no head learns slowly because of its
        scale. The rows of W sum to 1 on average, over the half of [relu d, relu -d] that is not 0.
        """
        super().__init__(inputs, hidden, EMBEDDING_DIM)
        rows = components * COMPONENT_DIM
        bound = (3 / EMBEDDING_DIM) ** 0.5
        self.w = nn.Parameter(torch.empty(rows, 2 * EMBEDDING_DIM).uniform_(-1, 1).mul_(bound))
        self.concave = Concave(components)
        self.reduce = self.reduction()

    def distance(self, from_: Tensor, to: Tensor) -> Tensor:
        """Return the reduced component norms, shape (B,)."""
        d = from_ - to  # (B, embedding)
        parts = torch.cat([d.relu(), (-d).relu()], dim=-1)  # (B, 2 embedding)
        values = F.linear(parts, self.effective_w())  # (B, components * 16)
        norms = safe_norm(values.unflatten(-1, (-1, COMPONENT_DIM)))  # (B, components)
        return self.reduce(self.concave(norms))

    def effective_w(self) -> Tensor:
        """Return W >= 0, computed from weights of any sign."""
        return non_negative(self.w)


class WideNormReleased(WideNorm):
    """Head d(x, y) = mean_k c_k(|W_k [relu d, relu -d]|_2), W >= 0, d = p(x) - p(y).

    The `wn` of the MRN paper's code. The reduction is the mean alone (that of `WideNorm` is their
    `wn-maxavg`), W = min(w^2, |w|), and weights start as in PyTorch's linear layers. Like
    `WideNorm`, it is a quasipseudometric by construction: a mean of concave functions of asymmetric
    norms.
    """

    reduction: ClassVar[type[nn.Module]] = Mean

    def __init__(self, inputs: int, hidden: int, components: int) -> None:
        """Build the given number of components with 16 values each."""
        super().__init__(inputs, hidden, components)
        reset_as_linear(self.w)

    def effective_w(self) -> Tensor:
        """Return W >= 0, computed from weights of any sign."""
        return non_negative_capped(self.w)
