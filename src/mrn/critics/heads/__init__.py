"""Heads by name: distances between embeddings, for critics and the toy study."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch

from mrn.critics.heads.base import Head
from mrn.critics.heads.deep_norm import DeepNorm, DeepNormReleased
from mrn.critics.heads.iqe import IQE
from mrn.critics.heads.mrn import MRN, MRNAsymmetric, MRNSquared, MRNSymmetric
from mrn.critics.heads.pqe import PQE, PQEReleased
from mrn.critics.heads.wide_norm import WideNorm, WideNormReleased

__all__ = ["ENCODER_DIM", "HEADS", "Head", "HeadDesign"]

ENCODER_DIM = 176
"""Width of the encoders and of the hidden layer of a projection, as in the paper."""


@dataclass(frozen=True)
class HeadDesign:
    """Head with one free size, adjusted to match a parameter count."""

    build: Callable[[int, int], Head]
    """Maps (width of the encoder, free size) to a head."""
    size: int
    """Published value of the free size."""
    distance: str
    """One-line formula of d(x, y)."""
    sizes_encoder: bool = False
    """Whether the free size is also the width of the encoder."""

    @cached_property
    def is_quasimetric(self) -> bool:
        """Return whether the head is a quasipseudometric for all weights."""
        with torch.device("meta"):  # shapes only: no memory, no random numbers
            return self.build(1, 1).is_quasimetric

    def build_on(self, width: int, size: int) -> tuple[int, Head]:
        """Return the width of the encoder and the head."""
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
        "sum_i w_i (1 - exp(-mean_j relu(u_ij - v_ij))), sum_i w_i starts at 1",
    ),
}
