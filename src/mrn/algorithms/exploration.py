"""How actions are tried out in training."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mrn.algorithms.networks import Actor
from mrn.utils.validation import Fraction, NonNegativeFloat, Validated

Explorer = Callable[[Tensor, Tensor], Tensor]
"""States and goals of N environments to actions in [-1, 1], shape (N, action)."""


@dataclass(frozen=True)
class NoiseSettings(Validated):
    """Gaussian noise, and now and then a uniform action instead."""

    exploration_noise: NonNegativeFloat = 0.2
    """Standard deviation of the exploration noise, as a share of the largest action."""
    random_action_prob: Fraction = 0.3
    """Probability of a uniform action instead, while exploring."""


def normal_like(x: Tensor, generator: torch.Generator) -> Tensor:
    """Standard normal noise in the shape of a tensor."""
    return torch.randn(x.shape, generator=generator, device=generator.device, dtype=x.dtype)


def uniform_actions(
    action_dim: int, steps: int, num_envs: int, generator: torch.Generator
) -> Explorer:
    """Uniform actions, whatever the state and the goal; those of all steps are drawn at once."""
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
    """An actor's actions with noise, clipped; the noise of all steps is drawn at once."""
    shape, device = (steps, num_envs, actor.action_dim), generator.device
    gaussian = torch.randn(shape, generator=generator, device=device)
    uniform = torch.rand(shape, generator=generator, device=device) * 2 - 1
    dice = torch.rand((steps, num_envs, 1), generator=generator, device=device)
    random = dice < settings.random_action_prob  # (steps, N, 1)
    # An action is keep x the actor's + offset, keep being 0 or 1.
    keeps = iter((~random).to(gaussian.dtype))
    offsets = iter(torch.where(random, uniform, settings.exploration_noise * gaussian))

    @torch.no_grad()
    def explore(state: Tensor, goal: Tensor) -> Tensor:
        return torch.addcmul(next(offsets), actor(state, goal), next(keeps)).clamp_(-1, 1)

    return explore
