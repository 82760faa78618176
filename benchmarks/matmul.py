"""Lower bound on the time of an update: its matrix products alone."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_PRODUCTS = {"aten::mm": (0, 1), "aten::addmm": (1, 2), "aten::bmm": (0, 1)}
"""Matrix products, with the positions of their two factors."""


class OperationRecorder(TorchDispatchMode):
    """Counter of torch operations that stores the layouts of the factors of matrix products."""

    def __init__(self) -> None:
        """Start with no operations."""
        super().__init__()
        self.operations = 0
        self.factors: list[tuple[Tensor, Tensor]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation and record it."""
        self.operations += 1
        if func._schema.name in _PRODUCTS:
            left, right = (args[index] for index in _PRODUCTS[func._schema.name])
            self.factors.append((_random_like(left), _random_like(right)))
        return func(*args, **(kwargs or {}))


def record_operations(call: Callable[[], object]) -> OperationRecorder:
    """Run a function and return the operations it consists of."""
    with OperationRecorder() as recorder:
        call()
    return recorder


def replay_products(recorder: OperationRecorder) -> Callable[[], None]:
    """Return a function that computes the recorded matrix products and nothing else.

    Factors and results have the recorded sizes and strides and are allocated beforehand. Biases
    and activations are left out.
    """
    products = [(a, b, (a @ b)) for a, b in recorder.factors]

    def run() -> None:
        for left, right, result in products:
            torch.matmul(left, right, out=result)

    return run


def _random_like(x: Tensor) -> Tensor:
    """Return random numbers in the memory layout of a tensor."""
    extent = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    return torch.randn(extent).as_strided(x.shape, x.stride())
