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
from mrn.critics.heads.mrn import EMBEDDING

COMPONENT = 16


class WideNorm(ProjectedHead):
    """d(x, y) = maxmean_k c_k(|W_k [relu d, relu -d]|_2), W >= 0, d = p(x) - p(y).

    Pitis et al. 2020, "An inductive bias for distances" (https://arxiv.org/abs/2002.05825).
    A quasipseudometric by construction: each component is an asymmetric norm of d (monotone in
    the non-negative parts), each c_k concave, increasing and 0 at 0. It depends on d alone.
    """

    is_quasimetric: ClassVar[bool] = True
    reduction: ClassVar[type[nn.Module]] = MaxMean

    def __init__(self, inputs: int, hidden: int, components: int) -> None:
        """Build the given number of components of 16 values each.

        Distances start on MRN's scale: rows of W have the sum 1 in the mean, over the half of
        [relu d, relu -d] that is not 0. So no head is slow to begin for its scale alone.
        """
        super().__init__(inputs, hidden, EMBEDDING)
        rows = components * COMPONENT
        bound = (3 / EMBEDDING) ** 0.5
        self.w = nn.Parameter(torch.empty(rows, 2 * EMBEDDING).uniform_(-1, 1).mul_(bound))
        self.concave = Concave(components)
        self.reduce = self.reduction()

    def distance(self, from_: Tensor, to: Tensor) -> Tensor:
        """The reduced component norms, shape (B,)."""
        d = from_ - to  # (B, embedding)
        parts = torch.cat([d.relu(), (-d).relu()], dim=-1)  # (B, 2 embedding)
        values = F.linear(parts, self.w_acting())  # (B, components * 16)
        norms = safe_norm(values.unflatten(-1, (-1, COMPONENT)))  # (B, components)
        return self.reduce(self.concave(norms))

    def w_acting(self) -> Tensor:
        """W >= 0, from weights of any sign."""
        return non_negative(self.w)


class WideNormReleased(WideNorm):
    """d(x, y) = mean_k c_k(|W_k [relu d, relu -d]|_2), W >= 0, d = p(x) - p(y).

    What the paper's authors' code calls `wn`: reduced by the mean alone (their `wn-maxavg` reduces
    as `WideNorm` does), with W = min(w^2, |w|) and the initial weights of PyTorch's linear layers.
    A quasipseudometric by construction, as `WideNorm` is: a mean of asymmetric norms under concave
    functions.
    """

    reduction: ClassVar[type[nn.Module]] = Mean

    def __init__(self, inputs: int, hidden: int, components: int) -> None:
        """Build the given number of components of 16 values each."""
        super().__init__(inputs, hidden, components)
        reset_as_linear(self.w)

    def w_acting(self) -> Tensor:
        """W >= 0, from weights of any sign."""
        return non_negative_capped(self.w)
