"""Deep Norm (DN): an input-convex network of the difference with concave activations."""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mrn.critics.heads.base import (
    Concave,
    ProjectedHead,
    non_negative,
    non_negative_capped,
    reset_as_linear,
)
from mrn.critics.heads.mrn import EMBEDDING_DIM


class DeepNorm(ProjectedHead):
    """Head d(x, y) = mean_i c_i(h_i), h = relu(W relu(U0 d) + U d), W >= 0, d = p(x) - p(y).

    Pitis et al. 2020, "An inductive bias for distances" (https://arxiv.org/abs/2002.05825).
    A quasipseudometric by construction: h is convex and positively homogeneous in d, hence
    subadditive, and each c_i is concave, increasing and 0 at 0. The distance depends on d alone.
    """

    is_quasimetric: ClassVar[bool] = True

    def __init__(self, inputs: int, hidden: int, width: int) -> None:
        """Build two layers of the given width.

        Initial distances have the scale of MRN's, so that no head learns slowly because of its
        scale. The entries of U0 and U have variance 1; the rows of W sum to 1 on average.
        """
        super().__init__(inputs, hidden, EMBEDDING_DIM)
        self.u0 = nn.Linear(EMBEDDING_DIM, width, bias=False)
        self.u = nn.Linear(EMBEDDING_DIM, width, bias=False)
        for layer in (self.u0, self.u):
            nn.init.uniform_(layer.weight, -(3**0.5), 3**0.5)
        self.w = nn.Parameter(torch.empty(width, width).uniform_(-1, 1).mul_((3 / width) ** 0.5))
        self.concave = Concave(width)

    def distance(self, from_: Tensor, to: Tensor) -> Tensor:
        """Return the mean of the concave activations, shape (B,)."""
        d = from_ - to  # (B, embedding)
        h = F.linear(self.first_layer(d), self.effective_w()) + self.u(d)  # (B, width)
        return self.concave(h.relu()).mean(dim=-1)

    def first_layer(self, d: Tensor) -> Tensor:
        """Return relu(U0 d), shape (B, width)."""
        return self.u0(d).relu()

    def effective_w(self) -> Tensor:
        """Return W >= 0, computed from weights of any sign."""
        return non_negative(self.w)


class DeepNormReleased(DeepNorm):
    """Head d(x, y) = mean_i c_i(h_i), h = relu(W U0 d + U d), W >= 0, d = p(x) - p(y).

    Deep Norm as released with the MRN paper and with the Deep Norm paper. There is no ReLU after
    the first layer, W = min(w^2, |w|), and weights start as in PyTorch's linear layers.

    A quasipseudometric by construction: h_i = relu(a_i . d), where a_i are the rows of W U0 + U. It
    is convex and positively homogeneous, hence subadditive, for any sign of W. Each c_i is concave,
    increasing and 0 at 0. W U0 + U can be any matrix because of U. So without the first ReLU, two
    layers represent no more functions than one.
    """

    def __init__(self, inputs: int, hidden: int, width: int) -> None:
        """Build two layers of the given width."""
        super().__init__(inputs, hidden, width)
        for weight in (self.u0.weight, self.u.weight, self.w):
            reset_as_linear(weight)

    def first_layer(self, d: Tensor) -> Tensor:
        """Return U0 d, shape (B, width)."""
        return self.u0(d)

    def effective_w(self) -> Tensor:
        """Return W >= 0, computed from weights of any sign."""
        return non_negative_capped(self.w)
