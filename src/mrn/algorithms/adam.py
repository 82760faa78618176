"""Adam (Kingma & Ba 2014, https://arxiv.org/abs/1412.6980) over all weights in one fused call."""

from collections.abc import Callable, Iterable
from functools import cached_property

import torch
from torch import Tensor
from torch.optim.adam import adam

Combine = Callable[[list[Tensor]], list[Tensor]]
"""Transformation of the gradients of all weights before a step."""


def keep_gradients(gradients: list[Tensor]) -> list[Tensor]:
    """Return the gradients unchanged, as for a single process."""
    return gradients


def clip_norm(gradients: list[Tensor], max_norm: float) -> list[Tensor]:
    """Return the gradients, scaled down together if their total norm exceeds `max_norm`."""
    norms = torch.stack(torch._foreach_norm(gradients))
    scale = max_norm / torch.linalg.vector_norm(norms).clamp(min=max_norm)
    return list(torch._foreach_mul(gradients, scale))


class Adam:
    """PyTorch's Adam through its functional form.

    Computes the same numbers as `torch.optim.Adam(fused=True)`. The constructor of that class
    imports PyTorch's compiler, which adds a second to every start, and its bookkeeping costs time
    at every step. As with `torch.optim`, move the weights before the first step, not later.
    """

    def __init__(
        self, weights: Iterable[Tensor], learning_rate: float, max_grad_norm: float | None = None
    ) -> None:
        """Optimize the weights, which can still be moved to another device or dtype.

        Args:
            weights: The weights.
            learning_rate: Step size.
            max_grad_norm: Norm of the gradient of all weights above which it is scaled down.
        """
        self.weights, self.learning_rate = list(weights), learning_rate
        self.max_grad_norm = max_grad_norm
        self.combine: Combine = keep_gradients  # runs with several ranks average

    @cached_property
    def mean(self) -> list[Tensor]:
        """Running means of the gradients, allocated on first use: where the weights are then."""
        return [torch.zeros_like(weight) for weight in self.weights]

    @cached_property
    def square(self) -> list[Tensor]:
        """Running means of the squared gradients, allocated on first use."""
        return [torch.zeros_like(weight) for weight in self.weights]

    @cached_property
    def steps(self) -> list[Tensor]:
        """Steps of each weight, allocated on first use; always float32, to count exactly."""
        return [
            torch.zeros((), dtype=torch.float32, device=weight.device) for weight in self.weights
        ]

    def zero_grad(self) -> None:
        """Clear the gradients."""
        for weight in self.weights:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Take one step. Weights without a gradient pause, and so do their moments.

        All ranks must set the gradients of the same weights.
        """
        active = [i for i, weight in enumerate(self.weights) if weight.grad is not None]
        gradients = [weight.grad for weight in self.weights if weight.grad is not None]
        weights, mean, square, steps = (
            [values[i] for i in active]
            for values in (self.weights, self.mean, self.square, self.steps)
        )
        gradients = self.combine(gradients)
        if self.max_grad_norm is not None:
            gradients = clip_norm(gradients, self.max_grad_norm)
        adam(
            weights,
            gradients,
            mean,
            square,
            [],
            steps,
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.learning_rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )

    def state_dict(self) -> dict[str, Tensor]:
        """Return the moments and step counts by name, without copying them."""
        lists = {"mean": self.mean, "square": self.square, "steps": self.steps}
        return {f"{name}.{i}": v for name, values in lists.items() for i, v in enumerate(values)}
