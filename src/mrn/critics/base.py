"""Interface of critics, and their building blocks."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Dims:
    """Sizes of the input vectors of a critic."""

    state: int
    action: int
    goal: int


class Critic(nn.Module, ABC):
    """Abstract base class of critics Q(s, a, g).

    A critic has two sides. The goal side depends on (s, g) alone, so the losses of critic and actor
    share it. States and goals are normalized; actions are in [-1, 1].
    """

    @property
    def is_quasimetric(self) -> bool:
        """Return whether -Q is a quasipseudometric of the embeddings for all weights."""
        return False

    @abstractmethod
    def goal_side(self, state: Tensor, goal: Tensor) -> Any:
        """Return the intermediate result that depends on (s, g) alone."""

    @abstractmethod
    def score(self, state: Tensor, action: Tensor, goal_side: Any) -> Tensor:
        """Return Q, shape (B,), for actions and the goal side of their (s, g)."""

    def forward(self, state: Tensor, action: Tensor, goal: Tensor) -> Tensor:
        """Return Q(s, a, g), shape (B,)."""
        return self.score(state, action, self.goal_side(state, goal))


class Linear(nn.Linear):
    """Linear layer x W^T + b that adds the bias last.

    On the CPU, PyTorch's layer first fills the output with the bias: an extra pass over memory that
    is not cached yet. Adding the bias after the product is faster. On a GPU the bias is free.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer to x, shape (..., inputs)."""
        if x.is_cuda or self.bias is None:
            return super().forward(x)
        return (x @ self.weight.t()).add_(self.bias)


def mlp(sizes: Sequence[int], activate_last: bool = False) -> nn.Sequential:
    """Build linear layers with ReLU between them and, optionally, after the last."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [Linear(inputs, outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*(layers if activate_last else layers[:-1]))


def safe_norm(x: Tensor) -> Tensor:
    """Return the Euclidean norm over the last axis, with value and gradient 0 at 0.

    The square root of a sum of squares has the gradient 0/0 at 0, where d(x, x) is evaluated.
    PyTorch's norm uses the subgradient 0 instead.
    """
    return torch.linalg.vector_norm(x, dim=-1)


def count_parameters(module: nn.Module) -> int:
    """Return the number of parameters, without redundant ones.

    A submodule can have more weights than degrees of freedom, such as a product of matrices. It
    reports the excess, which adds no capacity, in the attribute `redundant`.
    """
    redundant = sum(getattr(submodule, "redundant", 0) for submodule in module.modules())
    return sum(parameter.numel() for parameter in module.parameters()) - redundant
