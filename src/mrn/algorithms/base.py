"""What the rest of the house knows of a algorithm: this interface, and nothing else."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from mrn.algorithms.adam import Adam
from mrn.algorithms.exploration import Explorer
from mrn.batch import Batch
from mrn.critics import Critic, Dims
from mrn.utils.validation import Bounds, NonNegativeFloat, Validated

CriticFactory = Callable[[], Critic]
"""Makes a critic of the run's architecture, with new weights at each call."""


@dataclass(frozen=True)
class AlgorithmSettings(Validated):
    """The hyper-parameters that every algorithm has; each adds its own."""

    batch_size: Annotated[int, Bounds(ge=1, le=2**20)] = 1024
    """Transitions in a gradient step."""
    learning_rate: NonNegativeFloat = 1e-3
    """Adam's step size, for all networks."""
    hidden_dim: Annotated[int, Bounds(ge=2, le=2**14)] = 256
    """Width of actor and monolithic critic; the other critics match its number of parameters."""


class Algorithm(nn.Module, ABC):
    """Networks, their losses and their optimisers.

    States and goals come normalised, actions are in [-1, 1]. All randomness comes from generators
    that a checkpoint keeps, and all that changes is in `state_dict` and in the optimisers'.
    """

    Settings: ClassVar[type[AlgorithmSettings]] = AlgorithmSettings
    """Its hyper-parameters: limits on the fields, docstrings that are the help."""
    METRICS: ClassVar[tuple[str, ...]]
    """Names of what `update` returns: columns of metrics.csv after those of every run."""
    uses_critic: ClassVar[bool] = True
    """Whether it asks for critics at all. A run of one that does not has the critic `none`."""

    actor: nn.Module
    """The policy: states and goals to actions, without noise."""
    critic: Critic | None
    """The critic to look into; None for a algorithm that has none."""
    discount: float
    """Of its value; 1 without a critic."""

    def __init__(self, dims: Dims, make_critic: CriticFactory, settings: AlgorithmSettings) -> None:
        """Begin without networks, which each algorithm adds.

        Args:
            dims: Sizes of states, actions and goals.
            make_critic: Called for as many critics as the algorithm needs.
            settings: An instance of its `Settings`.
        """
        super().__init__()
        self.critic, self.discount = None, 1.0

    @property
    @abstractmethod
    def optimizers(self) -> dict[str, Adam]:
        """Its optimisers by name; a checkpoint keeps their moments under it."""

    @abstractmethod
    def update(self, batch: Batch, update_step: int, generator: torch.Generator) -> Tensor:
        """One gradient step.

        Args:
            batch: Transitions, normalised.
            update_step: Of the step in the run, from 1: for what is not done at every one.
            generator: Source of all that is random in the step.

        Returns:
            `METRICS`, shape (len(METRICS),), on the device, without waiting for them.
        """

    def end_cycle(self) -> None:
        """What is done once per cycle, after its updates."""

    @abstractmethod
    def explorer(self, steps: int, num_envs: int, generator: torch.Generator) -> Explorer:
        """The policy as it acts in training, for so many steps; all noise is drawn at once."""

    @torch.no_grad()
    def act(self, state: Tensor, goal: Tensor) -> Tensor:
        """The policy's actions, shape (B, action)."""
        return self.actor(state, goal)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Algorithm":
        """Move the optimisers' moments to where the weights go."""
        super()._apply(fn, recurse)
        for optimizer in self.optimizers.values():
            optimizer.apply(fn)
        return self
