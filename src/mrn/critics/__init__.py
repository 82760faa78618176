"""Critics Q(s, a, g): the table of names, and `make_critic`, which gives them all the same size."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from mrn.critics.base import Critic, Dims, count_parameters
from mrn.critics.bilinear import Bilinear
from mrn.critics.heads.base import Head
from mrn.critics.heads.deep_norm import DeepNorm
from mrn.critics.heads.iqe import IQE
from mrn.critics.heads.mrn import MRN, MRNAsymmetric, MRNSquared, MRNSymmetric
from mrn.critics.heads.pqe import PQE
from mrn.critics.heads.wide_norm import WideNorm
from mrn.critics.metric import MetricCritic, MetricCriticSAG
from mrn.critics.monolithic import Monolithic
from mrn.errors import look_up

__all__ = ["CRITICS", "Critic", "Dims", "Head", "Recipe", "make_critic"]

TOLERANCE = 0.03
"""How far the number of parameters may be from the monolithic critic's."""

REFERENCE_WIDTH = 256
"""The paper's width of the monolithic critic, to which the sizes below belong."""

ENCODER = 176
"""The paper's width of e1, e2 and of a projection's hidden layer."""


@dataclass(frozen=True)
class Recipe:
    """How to build a critic, with one free size that is moved where the count demands it."""

    build: Callable[[Dims, int, int], Critic]
    """(dims, width of the encoders, free size) -> critic."""
    size: int
    """The published value of the free size, beside a monolithic critic of width 256."""
    formula: str
    """Q in one line, for `mrn critics`."""


def _metric(head: Callable[[int, int, int], Head]) -> Callable[[Dims, int, int], Critic]:
    """A metric critic whose head takes (inputs, hidden, size)."""
    return lambda dims, width, size: MetricCritic(dims, width, head(width, width, size))


CRITICS: dict[str, Recipe] = {
    "mrn": Recipe(
        lambda dims, _, size: MetricCritic(dims, size, MRN(size, size)),
        ENCODER,
        "-(rms_i(phi_i(x) - phi_i(y)) + max_j relu(h_j(x) - h_j(y)))",
    ),
    "mrn-sym": Recipe(
        lambda dims, width, size: MetricCritic(dims, width, MRNSymmetric(width, size)),
        2 * ENCODER,
        "-rms_i(phi_i(x) - phi_i(y))",
    ),
    "mrn-asym": Recipe(
        lambda dims, width, size: MetricCritic(dims, width, MRNAsymmetric(width, size)),
        2 * ENCODER,
        "-max_j relu(h_j(x) - h_j(y))",
    ),
    "mrn-sag": Recipe(
        lambda dims, _, size: MetricCriticSAG(dims, size, MRN(size, size)),
        ENCODER,
        "mrn with y = e2(s, a, g)",
    ),
    "mrn-squared": Recipe(
        lambda dims, _, size: MetricCritic(dims, size, MRNSquared(size, size)),
        ENCODER,
        "-(mean_i (phi_i(x) - phi_i(y))^2 + max_j relu(h_j(x) - h_j(y)))",
    ),
    "monolithic": Recipe(
        lambda dims, _, size: Monolithic(dims, size), REFERENCE_WIDTH, "MLP(s, a, g)"
    ),
    "bvn": Recipe(
        lambda dims, _, size: Bilinear(dims, size, state_in_phi=True),
        ENCODER,
        "f(s, a) . phi(s, g)",
    ),
    "uvfa": Recipe(
        lambda dims, _, size: Bilinear(dims, size, state_in_phi=False),
        ENCODER,
        "f(s, a) . phi(g)",
    ),
    "dn": Recipe(
        _metric(DeepNorm), 162, "-mean_i c_i(relu(W relu(U0 d) + U d)_i), W >= 0, c concave"
    ),
    "wn": Recipe(_metric(WideNorm), 62, "-maxmean_k c_k(|W_k [relu d, relu -d]|), W >= 0"),
    "pqe": Recipe(_metric(PQE), 150, "-sum_i w_i (1 - exp(-mean_j relu(u_ij - v_ij)))"),
    "iqe": Recipe(_metric(IQE), 26, "-maxmean_k |union_j [u_kj, max(u_kj, v_kj)]|"),
}


def make_critic(
    name: str, state_dim: int, action_dim: int, goal_dim: int, width: int = REFERENCE_WIDTH
) -> Critic:
    """Build a critic with as many parameters as a monolithic one of the given width.

    Args:
        name: A key of `CRITICS`.
        state_dim: Length of the state vector.
        action_dim: Length of the action vector.
        goal_dim: Length of the goal vector.
        width: Width of the monolithic critic to match. Below about 100 a head's fixed outputs
            (pqe: 64) can be more than the whole; it is then as small as it gets.
    """
    recipe = look_up("critic", name, CRITICS)
    dims = Dims(state_dim, action_dim, goal_dim)
    encoder = _scale(ENCODER, width)

    def count(size: int) -> int:
        with torch.device("meta"):  # shapes only: no memory, no random numbers
            return count_parameters(recipe.build(dims, encoder, size))

    with torch.device("meta"):
        target = count_parameters(Monolithic(dims, width))
    size = _scale(recipe.size, width)
    if abs(count(size) / target - 1) > TOLERANCE:
        size = nearest_size(count, target)
    return recipe.build(dims, encoder, size)


def _scale(size: int, width: int) -> int:
    return max(1, round(size * width / REFERENCE_WIDTH))


def nearest_size(count: Callable[[int], int], target: int) -> int:
    """The size >= 1 whose count is nearest to the target; counts grow with the size."""
    high = 1
    while count(high) < target:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) < target else (low, middle)
    return min(
        (size for size in (low, high) if size >= 1), key=lambda size: abs(count(size) - target)
    )
