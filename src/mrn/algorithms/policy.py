"""Policy that maps raw observations to actions in the environment's bounds."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Policy(nn.Module):
    """Normalizer, actor and action bounds as one torch module."""

    def __init__(
        self,
        normalizer: nn.Module,
        actor: nn.Module,
        low: Sequence[float],
        high: Sequence[float],
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """Combine the parts.

        Args:
            normalizer: Module with the submodules `state` and `goal`.
            actor: Maps normalized states and goals to actions in [-1, 1].
            low: Lower bounds of the environment's actions.
            high: Upper bounds of the environment's actions.
            dtype: Type of the environment's actions.
        """
        super().__init__()
        self.normalizer, self.actor, self.dtype = normalizer, actor, dtype
        # Not persistent: the bounds belong to the task, which is saved separately.
        for name, values in (("low", low), ("high", high)):
            bound = torch.tensor(values, dtype=torch.float64)
            self.register_buffer(name, bound, persistent=False)

    low: Tensor
    high: Tensor

    def inputs(self, state: Tensor, goal: Tensor) -> tuple[Tensor, Tensor]:
        """Return normalized states and goals."""
        return self.normalizer.state(state), self.normalizer.goal(goal)  # type: ignore[operator]

    def unit(self, state: Tensor, goal: Tensor) -> Tensor:
        """Return actions in [-1, 1], shape (B, action)."""
        return self.actor(*self.inputs(state, goal))

    def forward(self, state: Tensor, goal: Tensor) -> Tensor:
        """Return actions in the environment's bounds."""
        return self.to_bounds(self.unit(state, goal))

    def to_bounds(self, action: Tensor) -> Tensor:
        """Map actions from [-1, 1] to the environment's bounds; clip rounding errors."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        scaled = (middle + half * action).to(self.dtype)
        return scaled.clamp(self.low.to(self.dtype), self.high.to(self.dtype))
