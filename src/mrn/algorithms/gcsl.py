"""Goal-conditioned supervised learning (Ghosh et al. 2019, https://arxiv.org/abs/1912.06088).

Every episode is an expert demonstration for the goals it achieved, so the actor imitates it under
those goals. There is no critic, no reward and no target network. Only transitions relabeled with a
goal achieved later contribute to the loss. With the default `her_ratio`, a fifth of a batch does
not; `her_ratio = 1` uses all of it.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from mrn.algorithms.adam import Adam
from mrn.algorithms.base import Algorithm, AlgorithmSettings, CriticFactory
from mrn.algorithms.exploration import Explorer, NoiseSettings, add_noise
from mrn.algorithms.losses import imitation_loss
from mrn.algorithms.networks import Actor
from mrn.batch import Batch
from mrn.critics import Dims


@dataclass(frozen=True)
class GCSLSettings(NoiseSettings, AlgorithmSettings):
    """Hyperparameters of GCSL: the common ones and those of exploration."""


class GCSL(Algorithm):
    """Actor that imitates the actions leading to achieved goals; no critic."""

    Settings: ClassVar[type[AlgorithmSettings]] = GCSLSettings
    METRICS = ("imitation_loss",)
    uses_critic = False

    actor: Actor

    def __init__(self, dims: Dims, make_critic: CriticFactory, settings: GCSLSettings) -> None:
        """Build the actor."""
        super().__init__(dims, make_critic, settings)
        self.settings, self.actor = settings, Actor(dims, settings.hidden_dim)
        self.optimizer = Adam(self.actor.parameters(), settings.learning_rate)

    @property
    def optimizers(self) -> dict[str, Adam]:
        """Return the optimizer of the actor."""
        return {"optimizer": self.optimizer}

    def update(self, batch: Batch, update_step: int, generator: torch.Generator) -> Tensor:
        """Take one imitation step; uses no random numbers."""
        self.optimizer.zero_grad()
        known = torch.isfinite(batch.steps_to_goal).to(batch.action.dtype)
        loss = imitation_loss(self.actor(batch.state, batch.goal), batch.action, known)
        loss.backward()
        self.optimizer.step()
        return loss.detach().unsqueeze(0)

    def explorer(self, steps: int, num_envs: int, generator: torch.Generator) -> Explorer:
        """Return the actor with Gaussian noise and occasional uniform actions."""
        return add_noise(self.actor, self.settings, steps, num_envs, generator)
