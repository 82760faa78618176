"""Targets: slow copies of networks, from which a critic's own estimates are taken."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

import torch
from torch import Tensor, nn

from mrn.utils.validation import Bounds, Fraction, NonNegativeInt, Validated

Network = TypeVar("Network", bound=nn.Module)


@dataclass(frozen=True)
class TargetSettings(Validated):
    """How a critic learns from its own estimates."""

    discount: Annotated[float, Bounds(ge=0, lt=1)] = 0.98
    """Discount factor gamma."""
    tau: Fraction = 0.1
    """Fraction of the target networks kept each time they move towards the networks."""
    target_update_interval: NonNegativeInt = 0
    """Updates between two moves of the targets; 0 for one move at the end of each cycle."""


def target_of(network: Network) -> Network:
    """A copy that no gradient reaches."""
    return copy.deepcopy(network).requires_grad_(False)


class Targets:
    """Moves targets towards their networks: target <- keep x target + (1 - keep) x network."""

    def __init__(
        self, settings: TargetSettings, pairs: Sequence[tuple[nn.Module, nn.Module]]
    ) -> None:
        """Remember the weights of each (target, network)."""
        self.settings = settings
        self.targets: list[Tensor] = [w for target, _ in pairs for w in target.parameters()]
        self.learned: list[Tensor] = [w for _, network in pairs for w in network.parameters()]

    def after_update(self, number: int) -> None:
        """Move them, if they move between updates and it is their turn."""
        every = self.settings.target_update_interval
        if every and number % every == 0:
            self._move()

    def after_cycle(self) -> None:
        """Move them, unless they move between updates."""
        if not self.settings.target_update_interval:
            self._move()

    @torch.no_grad()
    def _move(self) -> None:
        torch._foreach_lerp_(self.targets, self.learned, self.settings.tau)
