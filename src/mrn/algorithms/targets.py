"""Target networks and their soft updates."""

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
    """Settings of bootstrapped targets."""

    discount: Annotated[float, Bounds(ge=0, lt=1)] = 0.98
    """Discount factor gamma."""
    tau: Fraction = 0.1
    """Step size of a target update: target <- (1 - tau) target + tau network."""
    target_update_interval: NonNegativeInt = 0
    """Update the target networks every N updates; 0 for once at the end of each cycle."""


def make_target(network: Network) -> Network:
    """Return a copy without gradients."""
    return copy.deepcopy(network).requires_grad_(False)


class TargetUpdater:
    """Soft updates of target networks: target <- (1 - tau) target + tau network."""

    def __init__(
        self, settings: TargetSettings, pairs: Sequence[tuple[nn.Module, nn.Module]]
    ) -> None:
        """Collect the weights of each pair (target, network)."""
        self.settings = settings
        self.targets: list[Tensor] = [w for target, _ in pairs for w in target.parameters()]
        self.networks: list[Tensor] = [w for _, network in pairs for w in network.parameters()]

    def after_update(self, update_step: int) -> None:
        """Update the targets if `update_step` is a multiple of `target_update_interval`."""
        interval = self.settings.target_update_interval
        if interval and update_step % interval == 0:
            self._step()

    def after_cycle(self) -> None:
        """Update the targets if `target_update_interval` is 0."""
        if not self.settings.target_update_interval:
            self._step()

    @torch.no_grad()
    def _step(self) -> None:
        torch._foreach_lerp_(self.targets, self.networks, self.settings.tau)
