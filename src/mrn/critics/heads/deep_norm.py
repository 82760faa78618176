"""Deep Norm (DN): an input-convex network of the difference, then concave activations."""

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
from mrn.critics.heads.mrn import EMBEDDING


class DeepNorm(ProjectedHead):
    """d(x, y) = mean_i c_i(h_i), h = relu(W relu(U0 d) + U d), W >= 0, d = p(x) - p(y).

    Pitis et al. 2020, "An inductive bias for distances" (https://arxiv.org/abs/2002.05825).
    A quasipseudometric by construction: h is convex and positively homogeneous in d, hence
    subadditive, and each c_i is concave, increasing and 0 at 0. It depends on d alone.
    """

    is_quasimetric: ClassVar[bool] = True

    def __init__(self, inputs: int, hidden: int, width: int) -> None:
        """Build two layers of the given width.

        Distances start on MRN's scale: U0 and U have entries of variance 1, rows of W the sum 1
        in the mean. So no head is slow to begin for its scale alone.
        """
        super().__init__(inputs, hidden, EMBEDDING)
        self.u0 = nn.Linear(EMBEDDING, width, bias=False)
        self.u = nn.Linear(EMBEDDING, width, bias=False)
        for layer in (self.u0, self.u):
            nn.init.uniform_(layer.weight, -(3**0.5), 3**0.5)
        self.w = nn.Parameter(torch.empty(width, width).uniform_(-1, 1).mul_((3 / width) ** 0.5))
        self.concave = Concave(width)

    def distance(self, from_: Tensor, to: Tensor) -> Tensor:
        """The mean of the concave activations, shape (B,)."""
        d = from_ - to  # (B, embedding)
        h = F.linear(self.first_layer(d), self.w_acting()) + self.u(d)  # (B, width)
        return self.concave(h.relu()).mean(dim=-1)

    def first_layer(self, d: Tensor) -> Tensor:
        """relu(U0 d), shape (B, width)."""
        return self.u0(d).relu()

    def w_acting(self) -> Tensor:
        """W >= 0, from weights of any sign."""
        return non_negative(self.w)


class DeepNormReleased(DeepNorm):
    """d(x, y) = mean_i c_i(h_i), h = relu(W U0 d + U d), W >= 0, d = p(x) - p(y).

    Deep Norm as the paper's authors, and Deep Norm's own, released it: without the ReLU after the
    first layer, with W = min(w^2, |w|), and with the initial weights of PyTorch's linear layers.

    A quasipseudometric by construction: h_i = relu(a_i . d) with a_i the rows of W U0 + U, which is
    convex and positively homogeneous, hence subadditive, whatever the sign of W; and each c_i is
    concave, increasing and 0 at 0. But U makes W U0 + U any matrix, so without the first ReLU two
    layers can represent no more than one.
    """

    def __init__(self, inputs: int, hidden: int, width: int) -> None:
        """Build two layers of the given width."""
        super().__init__(inputs, hidden, width)
        for weight in (self.u0.weight, self.u.weight, self.w):
            reset_as_linear(weight)

    def first_layer(self, d: Tensor) -> Tensor:
        """U0 d, shape (B, width)."""
        return self.u0(d)

    def w_acting(self) -> Tensor:
        """W >= 0, from weights of any sign."""
        return non_negative_capped(self.w)
