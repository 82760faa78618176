"""Interval Quasimetric Embedding (IQE): lengths of unions of intervals."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from mrn.critics.heads.base import MaxMean, ProjectedHead

COMPONENT = 8


def union_length(left: Tensor, right: Tensor) -> Tensor:
    """Length of the union of the intervals [left_j, max(left_j, right_j)] over the last axis.

    In the order of the left ends, interval j adds what lies beyond the furthest right end so
    far: relu(right_j - max(left_j, max_{i<j} right_i)).
    """
    left, order = left.sort(dim=-1)
    right = right.gather(-1, order)  # (..., D)
    reached = right.cummax(dim=-1).values[..., :-1]  # furthest right end before intervals 2 .. D
    start = torch.maximum(left, F.pad(reached, (1, 0), value=-torch.inf))
    return (right - start).relu().sum(dim=-1)


class IQE(ProjectedHead):
    """d(x, y) = maxmean_k |union_j [u_kj, max(u_kj, v_kj)]|, u = p(x), v = p(y).

    Wang & Isola 2022, "Improved representation of asymmetrical distances with interval
    quasimetric embeddings" (https://arxiv.org/abs/2211.15120). Not in the paper: it came later.
    A quasipseudometric by construction: the union for (x, z) lies in those for (x, y), (y, z).
    """

    is_quasimetric: ClassVar[bool] = True

    def __init__(self, inputs: int, hidden: int, components: int) -> None:
        """Build a projection to the given number of components of 8 values each."""
        super().__init__(inputs, hidden, components * COMPONENT)
        self.reduce = MaxMean()

    def distance(self, from_: Tensor, to: Tensor) -> Tensor:
        """The reduced union lengths, shape (B,)."""
        parts = (-1, COMPONENT)
        return self.reduce(union_length(from_.unflatten(-1, parts), to.unflatten(-1, parts)))
