"""Exploration policies."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mrn.algorithms.networks import Actor
from mrn.utils.validation import Fraction, NonNegativeFloat, Validated

Explorer = Callable[[Tensor, Tensor], Tensor]
"""Maps states and goals of N environments to actions in [-1, 1], shape (N, action)."""


@dataclass(frozen=True)
class NoiseSettings(Validated):
    """Settings of exploration by Gaussian noise and occasional uniform actions."""

    exploration_noise: NonNegativeFloat = 0.2
    """Standard deviation of the exploration noise, relative to the largest action."""
    random_action_prob: Fraction = 0.3
    """Probability of a uniformly random action during exploration."""


def normal_like(x: Tensor, generator: torch.Generator) -> Tensor:
    """Return standard normal noise of the shape of `x`."""
    return torch.randn(x.shape, generator=generator, device=generator.device, dtype=x.dtype)


def uniform_actions(
    action_dim: int, steps: int, num_envs: int, generator: torch.Generator
) -> Explorer:
    """Return a policy of uniformly random actions, drawn in advance for all steps."""
    shape = (steps, num_envs, action_dim)
    actions = iter(torch.rand(shape, generator=generator, device=generator.device) * 2 - 1)
    return lambda _state, _goal: next(actions)


def add_noise(
    actor: Actor,
    settings: NoiseSettings,
    steps: int,
    num_envs: int,
    generator: torch.Generator,
) -> Explorer:
    """Add clipped exploration noise to an actor; the noise of all steps is drawn in advance."""
    shape, device = (steps, num_envs, actor.action_dim), generator.device
    gaussian = torch.randn(shape, generator=generator, device=device)
    uniform = torch.rand(shape, generator=generator, device=device) * 2 - 1
    uniform_per_row = torch.rand((steps, num_envs, 1), generator=generator, device=device)
    is_random = uniform_per_row < settings.random_action_prob
    # action = scale x actor + offset, where scale is 0 for random actions and else 1.
    scales = iter((~is_random).to(gaussian.dtype))
    offsets = iter(torch.where(is_random, uniform, settings.exploration_noise * gaussian))

    @torch.no_grad()
    def explore(state: Tensor, goal: Tensor) -> Tensor:
        return torch.addcmul(next(offsets), actor(state, goal), next(scales)).clamp_(-1, 1)

    return explore
