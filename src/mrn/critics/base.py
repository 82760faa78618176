"""Interface of critics, and their building blocks."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mrn.utils.precision import is_hidden_bfloat16


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

    Within `hidden_bfloat16`, a hidden layer rounds its input and weights and returns bfloat16. The
    weights themselves and their gradients stay in float32. Rounding the weights at every call costs
    about 3% of the product, too little for a cache.
    """

    def __init__(self, inputs: int, outputs: int, bias: bool = True, hidden: bool = False) -> None:
        """Build the layer; `hidden` marks a layer whose output only other layers use."""
        super().__init__(inputs, outputs, bias)
        self.hidden = hidden

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer to x, shape (..., inputs)."""
        if self.hidden and is_hidden_bfloat16():
            bias = None if self.bias is None else self.bias.bfloat16()
            return F.linear(x.bfloat16(), self.weight.bfloat16(), bias)
        x = x.to(self.weight.dtype)  # the output of a hidden layer may be bfloat16
        if x.is_cuda or self.bias is None:
            return super().forward(x)
        return (x @ self.weight.t()).add_(self.bias)


class MLP(nn.Sequential):
    """Sequence of layers that returns the type of its input, also with bfloat16 hidden layers."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply all layers to x, shape (..., inputs)."""
        return super().forward(x).to(x.dtype)


def mlp(sizes: Sequence[int], activate_last: bool = False) -> MLP:
    """Build linear layers with ReLU between them and, optionally, after the last.

    Layers followed by a ReLU are hidden layers.
    """
    layers: list[nn.Module] = []
    for index, (inputs, outputs) in enumerate(pairwise(sizes)):
        hidden = activate_last or index < len(sizes) - 2
        layers.append(Linear(inputs, outputs, hidden=hidden))
        if hidden:
            layers.append(nn.ReLU(inplace=True))
    return MLP(*layers)


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
