"""A policy as it is used: from what an environment shows to the action it takes."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Policy(nn.Module):
    """Normaliser, actor and action bounds: all that acting needs, in torch."""

    def __init__(
        self,
        normalizer: nn.Module,
        actor: nn.Module,
        low: Sequence[float],
        high: Sequence[float],
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """Put the parts together.

        Args:
            normalizer: Has the modules `state` and `goal`, for each its own.
            actor: Normalised states and goals to actions in [-1, 1].
            low: The least actions of the environment.
            high: The largest ones.
            dtype: Of the environment's actions.
        """
        super().__init__()
        self.normalizer, self.actor, self.dtype = normalizer, actor, dtype
        # Not part of the state: the bounds are the task's, and a task is saved by itself.
        for name, values in (("low", low), ("high", high)):
            bound = torch.tensor(values, dtype=torch.float64)
            self.register_buffer(name, bound, persistent=False)

    low: Tensor
    high: Tensor

    def inputs(self, state: Tensor, goal: Tensor) -> tuple[Tensor, Tensor]:
        """States and goals as the networks see them."""
        return self.normalizer.state(state), self.normalizer.goal(goal)  # type: ignore[operator]

    def unit(self, state: Tensor, goal: Tensor) -> Tensor:
        """Actions in [-1, 1], shape (B, action)."""
        return self.actor(*self.inputs(state, goal))

    def forward(self, state: Tensor, goal: Tensor) -> Tensor:
        """Actions in the environment's own units."""
        return self.to_bounds(self.unit(state, goal))

    def to_bounds(self, action: Tensor) -> Tensor:
        """Actions in [-1, 1] in the environment's own units; rounding does not leave the bounds."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        scaled = (middle + half * action).to(self.dtype)
        return scaled.clamp(self.low.to(self.dtype), self.high.to(self.dtype))
