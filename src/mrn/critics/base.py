"""What every critic is made of: its two-sided interface, the MLP, the safe norm."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Dims:
    """Sizes of the vectors a critic sees."""

    state: int
    action: int
    goal: int


class Critic(nn.Module, ABC):
    """Q(s, a, g), in two sides, so that the work on (s, g) is shared by both losses.

    States and goals come normalised, actions divided by the largest action.
    """

    @property
    def is_quasimetric(self) -> bool:
        """Whether -Q is a quasipseudometric of the embeddings, whatever the weights."""
        return False

    @abstractmethod
    def goal_side(self, state: Tensor, goal: Tensor) -> Any:
        """Whatever depends on (s, g) alone."""

    @abstractmethod
    def score(self, state: Tensor, action: Tensor, goal_side: Any) -> Tensor:
        """Q, shape (B,), for actions given the goal side of their (s, g)."""

    def forward(self, state: Tensor, action: Tensor, goal: Tensor) -> Tensor:
        """Q(s, a, g), shape (B,)."""
        return self.score(state, action, self.goal_side(state, goal))


class Linear(nn.Linear):
    """x W^T + b, with the bias added last.

    PyTorch's own begins by filling its result with the bias: one more pass over memory that is in
    no cache yet, where the product would have brought it in. On a GPU the bias is free.
    """

    def forward(self, x: Tensor) -> Tensor:
        """The affine map of x, shape (..., inputs)."""
        if x.is_cuda:
            return super().forward(x)
        return (x @ self.weight.t()).add_(self.bias)


def mlp(sizes: Sequence[int], activate_last: bool = False) -> nn.Sequential:
    """Linear layers of the given sizes with ReLU between them, and after the last if asked."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [Linear(inputs, outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*(layers if activate_last else layers[:-1]))


def safe_norm(x: Tensor) -> Tensor:
    """Euclidean norm over the last axis, exactly 0 at 0 and with gradient 0 there.

    The square root of a sum of squares has gradient 0/0 at 0, which is where d(x, x) lives.
    PyTorch's norm takes the subgradient 0 instead.
    """
    return torch.linalg.vector_norm(x, dim=-1)


def count_parameters(module: nn.Module) -> int:
    """Number of trainable values, but for those that a part calls `redundant`.

    A part whose weights only ever act as fewer numbers, as a product of matrices does, may say by
    an attribute of this name how many it has beyond these: they are no capacity.
    """
    redundant = sum(getattr(part, "redundant", 0) for part in module.modules())
    return sum(parameter.numel() for parameter in module.parameters()) - redundant
