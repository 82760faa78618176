"""Adam (Kingma & Ba 2014, https://arxiv.org/abs/1412.6980) over all weights in one fused call."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch.optim.adam import adam

Combine = Callable[[list[Tensor]], list[Tensor]]
"""What is done with the gradients of all weights before a step."""


def as_they_are(gradients: list[Tensor]) -> list[Tensor]:
    """The gradients themselves: what a single process steps by."""
    return gradients


class Adam:
    """PyTorch's Adam, through its functional form.

    The same numbers as `torch.optim.Adam(fused=True)`; but that one's constructor imports
    PyTorch's compiler, a second of every start, and its bookkeeping is paid at every step.
    """

    def __init__(self, weights: Iterable[Tensor], learning_rate: float) -> None:
        """Start with moments of zero."""
        self.weights, self.learning_rate = list(weights), learning_rate
        self.combine: Combine = as_they_are  # a run of many processes averages
        self.mean = [torch.zeros_like(weight) for weight in self.weights]
        self.square = [torch.zeros_like(weight) for weight in self.weights]
        self.steps = [torch.zeros((), device=weight.device) for weight in self.weights]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for weight in self.weights:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Take one step; a weight without a gradient has one of 0, and goes on by its momentum."""
        adam(
            self.weights,
            self.combine([torch.zeros_like(w) if w.grad is None else w.grad for w in self.weights]),
            self.mean,
            self.square,
            [],
            self.steps,
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.learning_rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )

    def apply(self, fn: Callable[[Tensor], Tensor]) -> None:
        """Move the moments, as `nn.Module` moves weights: to another device or type."""
        for values in (self.mean, self.square, self.steps):
            values[:] = map(fn, values)

    def state_dict(self) -> dict[str, Tensor]:
        """The moments and the number of steps, by name, in place."""
        lists = {"mean": self.mean, "square": self.square, "steps": self.steps}
        return {f"{name}.{i}": v for name, values in lists.items() for i, v in enumerate(values)}
