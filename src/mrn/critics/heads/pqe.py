"""Poisson Quasimetric Embedding (PQE-LH): a weighted sum of bounded quasimetrics."""

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from mrn.critics.heads.base import ProjectedHead

MIXTURES = 16
PROCESSES = 4


class PoissonHead(ProjectedHead):
    """Base class of d(x, y) = sum_i w_i (1 - exp(-mean_j relu(u_ij - v_ij))), u = p(x), v = p(y).

    Wang & Isola 2022, "On the learning and learnability of quasimetrics"
    (https://arxiv.org/abs/2206.15478), with Lebesgue measures and half-lines. A quasipseudometric
    by construction: a sum with weights >= 0 of concave functions, 0 at 0, of asymmetric norms.
    """

    is_quasimetric: ClassVar[bool] = True

    def __init__(self, inputs: int, hidden: int) -> None:
        """Build the projection to 16 x 4 values."""
        super().__init__(inputs, hidden, MIXTURES * PROCESSES)

    @abstractmethod
    def weights(self) -> Tensor:
        """Return the weights w_i >= 0, shape (16,)."""

    def distance(self, from_: Tensor, to: Tensor) -> Tensor:
        """Return the weighted sum of the components, shape (B,)."""
        excess = (from_ - to).relu().unflatten(-1, (MIXTURES, PROCESSES))  # (B, 16, 4)
        components = -torch.expm1(-excess.mean(dim=-1))  # (B, 16)
        return components @ self.weights()


class PQE(PoissonHead):
    """PQE-LH whose weights w_i start at 1 on average.

    The w_i are squared outputs of a deep linear network. Initial distances are bounded by 16. All
    weights of the network count as parameters, although it has 16 degrees of freedom.
    `PQEReleased` differs in both points.
    """

    def __init__(self, inputs: int, hidden: int, width: int) -> None:
        """Build the projection and a deep linear network of the given width."""
        super().__init__(inputs, hidden)
        # Each product keeps unit variance, so that the w_i start at 1 on average.
        self.first = nn.Parameter(torch.randn(width))
        self.second = nn.Parameter(torch.randn(width, width).mul_(width**-0.5))
        self.third = nn.Parameter(torch.randn(MIXTURES, width).mul_(width**-0.5))

    def weights(self) -> Tensor:
        """Return the weights w_i >= 0, shape (16,)."""
        return (self.third @ (self.second @ self.first)).square()


class PQEReleased(PoissonHead):
    """PQE-LH as released by its authors: the weights w_i initially sum to 1 on average.

    The w_i are squared outputs of a deep linear network of fixed width. Only its 16 degrees of
    freedom count as parameters, as in the release; the projection has the rest.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        """Build the projection with `hidden` units, and the deep linear network."""
        super().__init__(inputs, hidden)
        self.mixture = DeepLinear(MIXTURES)

    def weights(self) -> Tensor:
        """Return the weights w_i >= 0, shape (16,)."""
        return self.mixture().square()


class DeepLinear(nn.Module):
    """Vector parameterized as the product of a row and three matrices, plus an offset.

    The extra weights change how the vector learns, but not which values it can take. The entries of
    each factor have variance 1 / columns and the offset starts at 0. So the entries of the vector
    start with mean 0 and variance 1 / outputs, and their squares sum to 1 on average.
    """

    def __init__(self, outputs: int, width: int = 64) -> None:
        """Build factors of the given width, 64 in the PQE release."""
        super().__init__()
        shapes = ((width,), (width, width), (width, width), (width, outputs))
        self.factors = nn.ParameterList(
            torch.randn(shape).mul_(shape[-1] ** -0.5) for shape in shapes
        )
        self.offset = nn.Parameter(torch.zeros(outputs))
        self.redundant = sum(factor.numel() for factor in self.factors)

    def forward(self) -> Tensor:
        """Return the vector, shape (outputs,)."""
        row, *matrices = self.factors
        for matrix in matrices:
            row = row @ matrix
        return row + self.offset
