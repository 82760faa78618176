"""Critics Q(s, a, g): the table of names, and `make_critic`, which gives them all the same size."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from mrn.critics.base import Critic, Dims, count_parameters
from mrn.critics.bilinear import Bilinear
from mrn.critics.heads import ENCODER_DIM, HEADS, Head, HeadDesign
from mrn.critics.metric import MetricCritic, MetricCriticSAG
from mrn.critics.monolithic import Monolithic
from mrn.utils.errors import UserError
from mrn.utils.plugins import find_plugin
from mrn.utils.validation import PositiveInt, check

__all__ = ["CRITICS", "Architecture", "Critic", "Dims", "Head", "find_critic", "make_critic"]

TOLERANCE = 0.03
"""How far the number of parameters may be from the monolithic critic's."""

LARGEST_SIZE = 2**20
"""Where the search for a size ends."""

REFERENCE_HIDDEN_DIM = 256
"""The paper's hidden_dim of the monolithic critic, to which the sizes below belong."""


@dataclass(frozen=True, eq=False)  # each is its own: what builds it may not be comparable
class Architecture:
    """How to build a critic, with one free size that is moved where the count demands it."""

    build: Callable[[Dims, int, int], Critic]
    """(dims, hidden_dim of the encoders, free size) -> critic."""
    size: int
    """The published value of the free size, beside a monolithic critic of hidden_dim 256."""
    formula: str
    """Q in one line, for `mrn critics`."""


def _metric(head: HeadDesign) -> Architecture:
    """Minus a head's distance between two encoders' embeddings."""
    return Architecture(
        lambda dims, hidden_dim, size: MetricCritic(dims, *head.build_on(hidden_dim, size)),
        head.size,
        f"-({head.distance})",
    )


CRITICS: dict[str, Architecture] = {
    **{name: _metric(head) for name, head in HEADS.items() if name.startswith("mrn")},
    "mrn-sag": Architecture(
        lambda dims, hidden_dim, size: MetricCriticSAG(
            dims, *HEADS["mrn"].build_on(hidden_dim, size)
        ),
        ENCODER_DIM,
        "mrn with y = e2(s, a, g)",
    ),
    "monolithic": Architecture(
        lambda dims, _, size: Monolithic(dims, size), REFERENCE_HIDDEN_DIM, "MLP(s, a, g)"
    ),
    "bvn": Architecture(
        lambda dims, _, size: Bilinear(dims, size, state_in_phi=True),
        ENCODER_DIM,
        "f(s, a) . phi(s, g)",
    ),
    "uvfa": Architecture(
        lambda dims, _, size: Bilinear(dims, size, state_in_phi=False),
        ENCODER_DIM,
        "f(s, a) . phi(g)",
    ),
    **{name: _metric(head) for name, head in HEADS.items() if not name.startswith("mrn")},
}


def find_critic(name: str) -> Architecture:
    """The architecture of that name, or a user's own, `package.module:name`.

    Raises:
        UserError: There is none; lists those there are.
    """

    def fits(found: object) -> bool:
        return isinstance(found, Architecture)

    return find_plugin("critic", name, CRITICS, fits, "an mrn.critics.Architecture")


def make_critic(
    name: str,
    state_dim: int,
    action_dim: int,
    goal_dim: int,
    hidden_dim: int = REFERENCE_HIDDEN_DIM,
) -> Critic:
    """Build a critic with as many parameters as a monolithic one of the given hidden_dim.

    Args:
        name: A key of `CRITICS`, or `package.module:name` of an Architecture of your own.
        state_dim: Length of the state vector.
        action_dim: Length of the action vector.
        goal_dim: Length of the goal vector.
        hidden_dim: Width of the monolithic critic to match. Below about 100 a head's fixed outputs
            (pqe: 64) can be more than the whole; it is then as small as it gets.

    Raises:
        UserError: There is no such critic, or a size is no whole number of at least 1.
    """
    architecture = find_critic(name)
    dims = Dims(
        _size("state_dim", state_dim), _size("action_dim", action_dim), _size("goal_dim", goal_dim)
    )
    hidden_dim = _size("hidden_dim", hidden_dim)
    size = _fitting_size(architecture, dims, hidden_dim)
    return architecture.build(dims, _scale(ENCODER_DIM, hidden_dim), size)


@cache  # a algorithm with two critics asks twice, and finding one takes longer than building it
def _fitting_size(architecture: Architecture, dims: Dims, hidden_dim: int) -> int:
    """The free size with which the count is that of the monolithic critic."""

    def count(size: int) -> int:
        # Shapes only: no memory, no random numbers. Heads scale their first weights in place
        # (`mul_`): with "meta", `a * b` would import PyTorch's compiler, a second of every start.
        with torch.device("meta"):
            return count_parameters(architecture.build(dims, _scale(ENCODER_DIM, hidden_dim), size))

    with torch.device("meta"):
        target = count_parameters(Monolithic(dims, hidden_dim))
    size = _scale(architecture.size, hidden_dim)
    return size if abs(count(size) / target - 1) <= TOLERANCE else nearest_size(count, target)


def _size(name: str, value: int) -> int:
    """A size that can be one; a whole number of NumPy's, as `np.prod` of a shape, becomes Python's.

    Raises:
        UserError: Names the argument.
    """
    size = int(value) if isinstance(value, np.integer) else value
    check(name, size, PositiveInt)
    return size


def _scale(size: int, hidden_dim: int) -> int:
    return max(1, round(size * hidden_dim / REFERENCE_HIDDEN_DIM))


def nearest_size(count: Callable[[int], int], target: int) -> int:
    """The size >= 1 whose count is nearest to the target; counts grow with the size.

    Raises:
        UserError: They do not.
    """
    high = 1
    while count(high) < target:
        high *= 2
        if high > LARGEST_SIZE:
            raise UserError(
                f"a critic's `build` must make it larger with `size`; here it has {count(high):,} "
                f"parameters with {high:,}, and {target:,} are wanted, as the monolithic one has"
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) < target else (low, middle)
    return min(
        (size for size in (low, high) if size >= 1), key=lambda size: abs(count(size) - target)
    )
