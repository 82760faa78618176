"""Critics Q(s, a, g) by name, all built with the same number of parameters."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from mrn.critics.base import Critic, Dims, count_parameters
from mrn.critics.bilinear import Bilinear
from mrn.critics.checks import check_critic
from mrn.critics.heads import ENCODER_DIM, HEADS, Head, HeadDesign
from mrn.critics.metric import MetricCritic, MetricCriticSAG
from mrn.critics.monolithic import Monolithic
from mrn.critics.shared import SharedMetricCritic
from mrn.utils.errors import UserError
from mrn.utils.plugins import find_plugin, is_custom, wrap_plugin_errors
from mrn.utils.validation import PositiveInt, check

__all__ = ["CRITICS", "Architecture", "Critic", "Dims", "Head", "find_critic", "make_critic"]

TOLERANCE = 0.03
"""Largest relative difference of the parameter count from the monolithic critic's."""

MAX_SIZE = 2**20
"""Upper bound of the search for a size."""

REFERENCE_HIDDEN_DIM = 256
"""Width of the paper's monolithic critic; the published sizes refer to it."""


@dataclass(frozen=True, eq=False)  # compared by identity: `build` may not be comparable
class Architecture:
    """Critic architecture with one free size, adjusted to match a parameter count."""

    build: Callable[[Dims, int, int], Critic]
    """Maps (dims, hidden_dim of the encoders, free size) to a critic."""
    size: int
    """Published value of the free size, for a monolithic critic with hidden_dim 256."""
    formula: str
    """One-line formula of Q, printed by `mrn critics`."""


def _metric(head: HeadDesign) -> Architecture:
    """Return the architecture of a metric critic with the given head."""
    return Architecture(
        lambda dims, hidden_dim, size: MetricCritic(dims, *head.build_on(hidden_dim, size)),
        head.size,
        f"-({head.distance})",
    )


def _shared(name: str) -> Architecture:
    """Return the architecture of a metric critic whose goals are embedded as states are."""
    head = HEADS[name]
    return Architecture(
        lambda dims, hidden_dim, size: SharedMetricCritic(dims, *head.build_on(hidden_dim, size)),
        head.size,
        f"{name} with x = phi(s, a), y = psi(g)",
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
    **{f"{name}-shared": _shared(name) for name in ("mrn", "dn", "wn", "pqe", "iqe")},
}


def find_critic(name: str) -> Architecture:
    """Return an architecture by name, or a custom one by `package.module:name`.

    Raises:
        UserError: The name is unknown; the message lists the available ones.
    """

    def is_architecture(found: object) -> bool:
        return isinstance(found, Architecture)

    return find_plugin("critic", name, CRITICS, is_architecture, "an mrn.critics.Architecture")


def make_critic(
    name: str,
    state_dim: int,
    action_dim: int,
    goal_dim: int,
    hidden_dim: int = REFERENCE_HIDDEN_DIM,
) -> Critic:
    """Build a critic with the parameter count of a monolithic critic of the given hidden_dim.

    Args:
        name: Key of `CRITICS`, or `package.module:name` of a custom `Architecture`.
        state_dim: Length of the state vector.
        action_dim: Length of the action vector.
        goal_dim: Length of the goal vector.
        hidden_dim: Width of the monolithic critic to match. Below about 100, the fixed outputs of
            a head (64 for pqe) can exceed the whole count; the critic then has its minimum size.

    A custom critic is checked: shape and sign of its output, and its gradients.

    Raises:
        UserError: The critic is unknown, a custom critic fails a check, or a size is not an integer
            of at least 1.
    """
    find_critic(name)
    dims = Dims(
        _check_size("state_dim", state_dim),
        _check_size("action_dim", action_dim),
        _check_size("goal_dim", goal_dim),
    )
    critic = build_critic(name, dims, _check_size("hidden_dim", hidden_dim))
    is_meta = any(weight.is_meta for weight in critic.parameters())  # shapes only
    findings = check_critic(critic, dims) if is_custom(name) and not is_meta else []
    for each in findings:
        if each.verdict == "error":
            raise UserError(
                f"critic {name!r} cannot be used for training: {each.what}: {each.found}; "
                f"{each.remedy}"
            )
    return critic


def build_critic(name: str, dims: Dims, hidden_dim: int = REFERENCE_HIDDEN_DIM) -> Critic:
    """Build a critic as `make_critic` does, without checks.

    Raises:
        UserError: The critic is unknown, or building a custom critic fails.
    """
    architecture = find_critic(name)
    with wrap_plugin_errors("critic", name):
        size = _matching_size(architecture, dims, hidden_dim)
        return _build(architecture, dims, hidden_dim, size)


def _build(architecture: Architecture, dims: Dims, hidden_dim: int, size: int) -> Critic:
    """Build a critic of the given free size, with encoders scaled to `hidden_dim`."""
    critic = architecture.build(dims, _scale(ENCODER_DIM, hidden_dim), size)
    if not isinstance(critic, Critic):
        raise UserError(f"build must return an mrn.critics.Critic, got {critic!r}")
    return critic


@cache  # algorithms with two critics ask twice, and the search takes longer than building one
def _matching_size(architecture: Architecture, dims: Dims, hidden_dim: int) -> int:
    """Return the free size that matches the parameter count of the monolithic critic."""

    def count(size: int) -> int:
        # Shapes only: no memory, no random numbers. Heads scale their initial weights in place
        # (`mul_`): on "meta", `a * b` imports PyTorch's compiler and adds a second to every start.
        with torch.device("meta"):
            return count_parameters(_build(architecture, dims, hidden_dim, size))

    with torch.device("meta"):
        target = count_parameters(Monolithic(dims, hidden_dim))
    size = _scale(architecture.size, hidden_dim)
    return size if abs(count(size) / target - 1) <= TOLERANCE else nearest_size(count, target)


def _check_size(name: str, value: int) -> int:
    """Return a valid size as a Python int; accept NumPy integers, such as `np.prod` of a shape.

    Raises:
        UserError: The value is not an integer of at least 1; the message names the argument.
    """
    size = int(value) if isinstance(value, np.integer) else value
    check(name, size, PositiveInt)
    return size


def _scale(size: int, hidden_dim: int) -> int:
    """Scale a published size from the reference width to `hidden_dim`."""
    return max(1, round(size * hidden_dim / REFERENCE_HIDDEN_DIM))


def nearest_size(count: Callable[[int], int], target: int) -> int:
    """Return the size >= 1 whose count is nearest to the target; counts must grow with the size.

    Raises:
        UserError: No size up to `MAX_SIZE` reaches the target.
    """
    high = 1
    while count(high) < target:
        high *= 2
        if high > MAX_SIZE:
            raise UserError(
                "the number of parameters of a critic must grow with the `size` passed to `build`; "
                f"size {high:,} gives {count(high):,} parameters, but the monolithic critic has "
                f"{target:,}"
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) < target else (low, middle)
    return min(
        (size for size in (low, high) if size >= 1), key=lambda size: abs(count(size) - target)
    )
