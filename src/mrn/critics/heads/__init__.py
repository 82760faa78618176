"""Distances between embeddings: the table of heads, for critics and for the toy example."""

from collections.abc import Callable
from dataclasses import dataclass

from mrn.critics.heads.base import Head
from mrn.critics.heads.deep_norm import DeepNorm, DeepNormReleased
from mrn.critics.heads.iqe import IQE
from mrn.critics.heads.mrn import MRN, MRNAsymmetric, MRNSquared, MRNSymmetric
from mrn.critics.heads.pqe import PQE, PQEReleased
from mrn.critics.heads.wide_norm import WideNorm, WideNormReleased

__all__ = ["ENCODER", "HEADS", "Head", "HeadDesign"]

ENCODER_DIM = 176
"""The paper's width of e1, e2 and of a projection's hidden layer."""


@dataclass(frozen=True)
class HeadDesign:
    """How to build a head, with one free size that is moved where a count of parameters demands."""

    build: Callable[[int, int], Head]
    """(width of the encoder below, free size) -> head."""
    size: int
    """The published value of the free size."""
    distance: str
    """d(x, y) in one line."""
    sizes_encoder: bool = False
    """Whether the free size is the width of the encoder, too."""

    def build_on(self, width: int, size: int) -> tuple[int, Head]:
        """The width of the encoder below, and the head."""
        width = size if self.sizes_encoder else width
        return width, self.build(width, size)


HEADS: dict[str, HeadDesign] = {
    "mrn": HeadDesign(
        MRN,
        ENCODER_DIM,
        "rms_i(phi_i(x) - phi_i(y)) + max_j relu(h_j(x) - h_j(y))",
        sizes_encoder=True,
    ),
    "mrn-sym": HeadDesign(MRNSymmetric, 2 * ENCODER_DIM, "rms_i(phi_i(x) - phi_i(y))"),
    "mrn-asym": HeadDesign(MRNAsymmetric, 2 * ENCODER_DIM, "max_j relu(h_j(x) - h_j(y))"),
    "mrn-squared": HeadDesign(
        MRNSquared,
        ENCODER_DIM,
        "mean_i (phi_i(x) - phi_i(y))^2 + max_j relu(h_j(x) - h_j(y))",
        sizes_encoder=True,
    ),
    "dn": HeadDesign(
        lambda width, size: DeepNorm(width, width, size),
        162,
        "mean_i c_i(relu(W relu(U0 d) + U d)_i), W >= 0, c concave",
    ),
    "wn": HeadDesign(
        lambda width, size: WideNorm(width, width, size),
        62,
        "maxmean_k c_k(|W_k [relu d, relu -d]|), W >= 0",
    ),
    "pqe": HeadDesign(
        lambda width, size: PQE(width, width, size),
        150,
        "sum_i w_i (1 - exp(-mean_j relu(u_ij - v_ij)))",
    ),
    "iqe": HeadDesign(
        lambda width, size: IQE(width, width, size),
        26,
        "maxmean_k |union_j [u_kj, max(u_kj, v_kj)]|",
    ),
    "dn-released": HeadDesign(
        lambda width, size: DeepNormReleased(width, width, size),
        162,
        "mean_i c_i(relu(W U0 d + U d)_i), W >= 0, c concave",
    ),
    "wn-released": HeadDesign(
        lambda width, size: WideNormReleased(width, width, size),
        62,
        "mean_k c_k(|W_k [relu d, relu -d]|), W >= 0",
    ),
    "pqe-released": HeadDesign(
        PQEReleased,
        300,
        "sum_i w_i (1 - exp(-mean_j relu(u_ij - v_ij))), sum_i w_i begins at 1",
    ),
}
