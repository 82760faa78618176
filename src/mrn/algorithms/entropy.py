"""Stochastic policies with a target entropy: settings and exploration."""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from mrn.algorithms.exploration import Explorer
from mrn.algorithms.networks import GaussianActor
from mrn.utils.validation import Bounds, Validated


@dataclass(frozen=True)
class EntropySettings(Validated):
    """Settings of a policy whose entropy is kept at a target by a learned temperature."""

    ent_coef: Annotated[float, Bounds(ge=1e-6)] = 0.2
    """Initial entropy coefficient (temperature) in the actor's loss; it is learned."""
    target_entropy: float = -1.0
    """Target entropy of the policy per action dimension. The maximum, for uniform actions, is
    log 2 = 0.69."""


def sample_policy(
    actor: GaussianActor, steps: int, num_envs: int, generator: torch.Generator
) -> Explorer:
    """Return the stochastic policy itself; the noise of all steps is drawn in advance."""
    shape = (steps, num_envs, actor.action_dim)
    noise = iter(torch.randn(shape, generator=generator, device=generator.device))

    @torch.no_grad()
    def explore(state: Tensor, goal: Tensor) -> Tensor:
        return actor.sample(state, goal, next(noise))[0]

    return explore
