"""Goal-conditioned supervised learning (Ghosh et al. 2019, https://arxiv.org/abs/1912.06088).

Whatever an episode did, it did right for the goals that it came to achieve: imitate it under these.
There is no critic, no reward and no target. Transitions whose goal was not replaced by one that
their episode achieved later teach nothing here; with hindsight's usual probability they are a fifth
of a batch (`her_ratio = 1` makes use of all).
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
    """The hyper-parameters of GCSL: those of every algorithm, and of exploration."""


class GCSL(Algorithm):
    """An actor that imitates what led to the goals that were achieved; no critic."""

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
        """One."""
        return {"optimizer": self.optimizer}

    def update(self, batch: Batch, update_step: int, generator: torch.Generator) -> Tensor:
        """One step of imitation; nothing in it is random."""
        self.optimizer.zero_grad()
        known = torch.isfinite(batch.steps_to_goal).to(batch.action.dtype)
        loss = imitation_loss(self.actor(batch.state, batch.goal), batch.action, known)
        loss.backward()
        self.optimizer.step()
        return loss.detach().unsqueeze(0)

    def explorer(self, steps: int, num_envs: int, generator: torch.Generator) -> Explorer:
        """The actor with Gaussian noise, and now and then a uniform action."""
        return add_noise(self.actor, self.settings, steps, num_envs, generator)
