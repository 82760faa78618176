"""Model-based hindsight experience replay (Yang et al. 2021, https://arxiv.org/abs/2107.00306).

DDPG with two additions. A learned model imagines what the current policy would achieve after a
transition; the strategy `imagined` of `goal_mix` relabels transitions with these goals. The actor
also imitates the actions of relabeled transitions, because they lead to the new goal.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from mrn.algorithms.adam import Adam
from mrn.algorithms.base import AlgorithmSettings, CriticFactory
from mrn.algorithms.ddpg import DDPG, DDPGSettings
from mrn.algorithms.dynamics import Change, Dynamics
from mrn.algorithms.exploration import normal_like
from mrn.algorithms.losses import imitation_loss
from mrn.batch import Batch
from mrn.critics import Dims
from mrn.utils.normalization import CLIP_STD
from mrn.utils.validation import Bounds, NonNegativeFloat

MAX_GRAD_NORM = 5.0
"""Largest norm of the model's gradient."""


@dataclass(frozen=True)
class MHERSettings(DDPGSettings):
    """Hyperparameters of MHER: those of DDPG, and those of its model with the authors' values."""

    imagined_steps: Annotated[int, Bounds(ge=1, le=1000)] = 5
    """Length of the rollouts through the model that imagined goals come from."""
    imitation_weight: NonNegativeFloat = 3.0
    """Weight of the imitation loss of relabeled transitions in the actor's loss."""
    model_updates: Annotated[int, Bounds(ge=1, le=1000)] = 2
    """Number of gradient steps of the model per update."""


class MHER(DDPG):
    """DDPG with goals imagined by a learned model, and imitation of relabeled transitions."""

    Settings: ClassVar[type[AlgorithmSettings]] = MHERSettings
    METRICS = (*DDPG.METRICS, "model_loss")
    imagines_goals = True

    settings: MHERSettings

    def __init__(self, dims: Dims, make_critic: CriticFactory, settings: MHERSettings) -> None:
        """Build the networks of DDPG and the model."""
        super().__init__(dims, make_critic, settings)
        self.model = Dynamics(dims, settings.hidden_dim)
        weights = self.model.parameters()
        self.model_optimizer = Adam(weights, settings.learning_rate, MAX_GRAD_NORM)

    @property
    def optimizers(self) -> dict[str, Adam]:
        """Return the optimizers of actor and critic, and of the model."""
        return super().optimizers | {"model_optimizer": self.model_optimizer}

    def update(self, batch: Batch, update_step: int, generator: torch.Generator) -> Tensor:
        """Update the model, then critic and actor; uses no random numbers."""
        model_loss = self.update_model(batch)
        losses = super().update(batch, update_step, generator)
        return torch.cat([losses, model_loss.unsqueeze(0)])

    def update_model(self, batch: Batch) -> Tensor:
        """Take `model_updates` gradient steps; return the loss before the first."""
        assert batch.achieved_change is not None  # see `imagines_goals`
        change = Change(batch.next_state - batch.state, batch.achieved_change)
        losses = []
        for _ in range(self.settings.model_updates):
            self.model_optimizer.zero_grad()
            loss = self.model.loss(batch.state, batch.action, change)
            loss.backward()
            self.model_optimizer.step()
            losses.append(loss.detach())
        return losses[0]

    def policy_loss(self, batch: Batch, policy_action: Tensor, policy_q: Tensor) -> Tensor:
        """Add the imitation of transitions whose goal lies ahead, in reality or in the model."""
        ahead = torch.isfinite(batch.steps_to_goal).to(policy_action.dtype)
        imitation = imitation_loss(policy_action, batch.action, ahead)
        loss = super().policy_loss(batch, policy_action, policy_q)
        return loss + self.settings.imitation_weight * imitation

    @torch.no_grad()
    def imagine(
        self, state: Tensor, goal: Tensor, uniform: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Roll out the policy with exploration noise, for up to `imagined_steps` steps.

        The number of steps is uniform in 0 .. `imagined_steps`.
        """
        limit = self.settings.imagined_steps
        steps = (uniform * (limit + 1)).int()
        shape = (limit, len(state), self.actor.action_dim)
        noise = normal_like(state.new_empty(shape), generator)
        achieved = torch.zeros_like(goal)
        for taken in range(limit):
            action = self.actor(state, goal) + self.settings.exploration_noise * noise[taken]
            change = self.model(state, action.clamp_(-1, 1))
            achieved += torch.where((taken < steps).unsqueeze(-1), change.achieved, 0)
            state = (state + change.state).clamp_(-CLIP_STD, CLIP_STD)  # as inputs are
        return achieved, steps
