"""Poisson Quasimetric Embedding (PQE-LH): a weighted sum of bounded quasimetrics."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from mrn.critics.heads.base import ProjectedHead

MIXTURES = 16
PROCESSES = 4


class PQE(ProjectedHead):
    """d(x, y) = sum_i w_i (1 - exp(-mean_j relu(u_ij - v_ij))), u = p(x), v = p(y).

    Wang & Isola 2022, "On the learning and learnability of quasimetrics"
    (https://arxiv.org/abs/2206.15478), with Lebesgue measures and half-lines. The weights w_i
    are squares of the output of a deep linear network. A quasipseudometric by construction: a
    concave function, 0 at 0, of an asymmetric norm, in a sum with weights >= 0.
    """

    is_quasimetric: ClassVar[bool] = True

    def __init__(self, inputs: int, hidden: int, width: int) -> None:
        """Build the projection to 16 x 4 values and a deep linear network of the given width."""
        super().__init__(inputs, hidden, MIXTURES * PROCESSES)
        # Each product keeps unit variance, so that the weights start at 1 in the mean.
        self.first = nn.Parameter(torch.randn(width))
        self.second = nn.Parameter(torch.randn(width, width) * width**-0.5)
        self.third = nn.Parameter(torch.randn(MIXTURES, width) * width**-0.5)

    def weights(self) -> Tensor:
        """The w_i >= 0, shape (16,)."""
        return (self.third @ (self.second @ self.first)).square()

    def distance(self, from_: Tensor, to: Tensor) -> Tensor:
        """The weighted sum of the components, shape (B,)."""
        excess = (from_ - to).relu().unflatten(-1, (MIXTURES, PROCESSES))  # (B, 16, 4)
        components = -torch.expm1(-excess.mean(dim=-1))  # (B, 16)
        return components @ self.weights()
