"""The floor of an update: its matrix products, run bare."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_PRODUCTS = {"aten::mm": (0, 1), "aten::addmm": (1, 2), "aten::bmm": (0, 1)}
"""Which arguments of an operation are the two factors."""


class Record(TorchDispatchMode):
    """Counts the operations in a block, and remembers the factors' layouts of its products."""

    def __init__(self) -> None:
        """Start with none."""
        super().__init__()
        self.operations = 0
        self.factors: list[tuple[Tensor, Tensor]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation, remembering it if it is a product."""
        self.operations += 1
        if func._schema.name in _PRODUCTS:
            left, right = (args[index] for index in _PRODUCTS[func._schema.name])
            self.factors.append((_like(left), _like(right)))
        return func(*args, **(kwargs or {}))


def record(work: Callable[[], object]) -> Record:
    """Do some work and remember of what it was made."""
    with Record() as made_of:
        work()
    return made_of


def bare_products(made_of: Record) -> Callable[[], None]:
    """A function that does the recorded matrix products, and nothing else.

    Every product has factors and a result of its own, of the same sizes and strides, allocated
    beforehand; biases and activations are left out.
    """
    products = [(a, b, (a @ b)) for a, b in made_of.factors]

    def run() -> None:
        for left, right, result in products:
            torch.matmul(left, right, out=result)

    return run


def _like(x: Tensor) -> Tensor:
    """Random numbers in the layout of a tensor."""
    extent = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    return torch.randn(extent).as_strided(x.shape, x.stride())
