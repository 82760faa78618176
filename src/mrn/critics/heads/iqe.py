"""Interval Quasimetric Embedding (IQE): lengths of unions of intervals."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from mrn.critics.heads.base import MaxMean, ProjectedHead

COMPONENT_DIM = 8


def union_length(left: Tensor, right: Tensor) -> Tensor:
    """Return the length of the union of the intervals [left_j, max(left_j, right_j)], (...).

    The intervals are along the last axis. Sorted by left end, interval j adds its part beyond all
    previous right ends: relu(right_j - max(left_j, max_{i<j} right_i)).
    """
    left, order = left.sort(dim=-1)
    right = right.gather(-1, order)  # (..., D)
    reached = right.cummax(dim=-1).values[..., :-1]  # largest right end before intervals 2 .. D
    start = torch.maximum(left, F.pad(reached, (1, 0), value=-torch.inf))
    return (right - start).relu().sum(dim=-1)


class IQE(ProjectedHead):
    """Head d(x, y) = maxmean_k |union_j [u_kj, max(u_kj, v_kj)]|, u = p(x), v = p(y).

    Wang & Isola 2022, "Improved representation of asymmetrical distances with interval
    quasimetric embeddings" (https://arxiv.org/abs/2211.15120). Published after the MRN paper,
    which does not compare with it. A quasipseudometric by construction: the union for (x, z) is
    contained in the unions for (x, y) and (y, z).
    """

    is_quasimetric: ClassVar[bool] = True

    def __init__(self, inputs: int, hidden: int, components: int) -> None:
        """Build a projection to the given number of components with 8 intervals each."""
        super().__init__(inputs, hidden, components * COMPONENT_DIM)
        self.reduce = MaxMean()

    def distance(self, from_: Tensor, to: Tensor) -> Tensor:
        """Return the reduced union lengths, shape (B,)."""
        left, right = torch.broadcast_tensors(from_, to)
        parts = (-1, COMPONENT_DIM)
        return self.reduce(union_length(left.unflatten(-1, parts), right.unflatten(-1, parts)))
