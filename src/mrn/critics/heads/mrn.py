"""The paper's head: a metric plus an asymmetric residual (Prop. 1 and the listing)."""

from collections.abc import Callable
from typing import ClassVar

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
