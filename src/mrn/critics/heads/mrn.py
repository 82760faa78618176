"""The paper's head: a metric plus an asymmetric residual (Prop. 1 and the listing)."""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from mrn.critics.base import Linear, safe_norm
from mrn.critics.heads.base import Head

EMBEDDING_DIM = 16

Part = Callable[[Tensor, Tensor], Tensor]
"""Distance, shape (B,), between embeddings of shape (B, embedding)."""


def symmetric_part(phi_x: Tensor, phi_y: Tensor) -> Tensor:
    """Return sqrt(mean_i (phi_i(x) - phi_i(y))^2), the root mean square of the listing."""
    return safe_norm(phi_x - phi_y) / phi_x.shape[-1] ** 0.5


def squared_part(phi_x: Tensor, phi_y: Tensor) -> Tensor:
    """Return mean_i (phi_i(x) - phi_i(y))^2, which violates the triangle inequality."""
    return (phi_x - phi_y).square().mean(dim=-1)


def asymmetric_part(h_x: Tensor, h_y: Tensor) -> Tensor:
    """Return max_j relu(h_j(x) - h_j(y)).

    With enough features, it represents any quasipseudometric (Theorem 2).
    """
    return (h_x - h_y).max(dim=-1).values.relu()


def symmetric_pairs(phi_x: Tensor, phi_y: Tensor) -> Tensor:
    """Return `symmetric_part` of all pairs, shape (B, C)."""
    exact = "donot_use_mm_for_euclid_dist"  # a product would cancel at small distances
    return torch.cdist(phi_x, phi_y, compute_mode=exact) / phi_x.shape[-1] ** 0.5


class LargestDifference(torch.autograd.Function):
    """max_j (x_ij - y_kj) of all pairs (i, k), one feature j at a time.

    A tensor of all differences, (B, C, features), exceeds the caches of a CPU: this is about twice
    as fast. Tied features each receive the whole gradient.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        """Return the largest differences, shape (B, C), of x (B, features) and y (C, features)."""
        columns = zip(x.unbind(1), y.unbind(1), strict=True)
        largest = x.new_full((len(x), len(y)), -torch.inf)
        for from_, to in columns:
            torch.maximum(largest, from_.unsqueeze(1) - to, out=largest)
        ctx.save_for_backward(x, y, largest)
        return largest

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients: those of the features that attain the maximum."""
        x, y, largest = ctx.saved_tensors
        rows, columns = [], []
        for from_, to in zip(x.unbind(1), y.unbind(1), strict=True):
            attained = gradient * (from_.unsqueeze(1) - to == largest)
            rows.append(attained.sum(1))
            columns.append(attained.sum(0))
        return torch.stack(rows, 1), -torch.stack(columns, 1)


def asymmetric_pairs(h_x: Tensor, h_y: Tensor) -> Tensor:
    """Return `asymmetric_part` of all pairs, shape (B, C)."""
    largest: Tensor = LargestDifference.apply(h_x, h_y)
    return largest.relu()


PAIRS: dict[Part, Part] = {symmetric_part: symmetric_pairs, asymmetric_part: asymmetric_pairs}
"""The functions of all pairs."""


class MRN(Head):
    """Head d(x, y) = sqrt(mean_i (phi_i(x) - phi_i(y))^2) + max_j relu(h_j(x) - h_j(y)).

    Liu et al. 2023, "Metric residual networks for sample efficient goal-conditioned
    reinforcement learning" (https://arxiv.org/abs/2208.08133). A quasipseudometric by
    construction. phi and h have one hidden layer each; both are computed in a single product.
    """

    is_quasimetric: ClassVar[bool] = True
    parts: ClassVar[tuple[Part, ...]] = (symmetric_part, asymmetric_part)

    def __init__(self, inputs: int, hidden: int, embedding: int = EMBEDDING_DIM) -> None:
        """Build a projection inputs - hidden - embedding for each part."""
        super().__init__()
        self.hidden = Linear(inputs, len(self.parts) * hidden, hidden=True)
        self.outputs = nn.ModuleList(Linear(hidden, embedding) for _ in self.parts)

    def project(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return (phi(x), h(x)), each of shape (B, embedding)."""
        hidden = self.hidden(x).relu_().chunk(len(self.parts), dim=-1)
        return tuple(output(part) for output, part in zip(self.outputs, hidden, strict=True))

    def terms(self, from_: tuple[Tensor, ...], to: tuple[Tensor, ...]) -> list[Tensor]:
        """Return the distance of each part, shape (B,)."""
        return [part(x, y) for part, x, y in zip(self.parts, from_, to, strict=True)]

    def distance(self, from_: tuple[Tensor, ...], to: tuple[Tensor, ...]) -> Tensor:
        """Return the sum of the parts, shape (B,)."""
        return sum(self.terms(from_, to))  # type: ignore[return-value]

    def pairs(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the distances of all pairs, shape (B, C)."""
        projections = zip(self.parts, self.project(x), self.project(y), strict=True)
        terms = [PAIRS[part](*sides) for part, *sides in projections]
        return sum(terms)  # type: ignore[return-value]


class MRNSymmetric(MRN):
    """Head d(x, y) = sqrt(mean_i (phi_i(x) - phi_i(y))^2): the metric part, a pseudometric."""

    parts: ClassVar[tuple[Part, ...]] = (symmetric_part,)


class MRNAsymmetric(MRN):
    """Head d(x, y) = max_j relu(h_j(x) - h_j(y)): the residual, a quasipseudometric."""

    parts: ClassVar[tuple[Part, ...]] = (asymmetric_part,)


class MRNSquared(MRN):
    """Head d(x, y) = mean_i (phi_i(x) - phi_i(y))^2 + max_j relu(h_j(x) - h_j(y)).

    The formula of the authors' first release. NOT a quasipseudometric: on a line, the way from 0 to
    2 via 1 costs 1 + 1 < 4.
    """

    is_quasimetric: ClassVar[bool] = False
    parts: ClassVar[tuple[Part, ...]] = (squared_part, asymmetric_part)
    pairs = Head.pairs
