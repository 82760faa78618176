"""Interface of learning algorithms. Other packages use algorithms only through it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from mrn.algorithms.adam import Adam
from mrn.algorithms.exploration import Explorer
from mrn.batch import Batch, TrajectorySampling
from mrn.critics import Critic, Dims
from mrn.utils.precision import Precision
from mrn.utils.validation import Bounds, NonNegativeFloat, Validated

CriticFactory = Callable[[], Critic]
"""Builds a critic of the run's architecture with new random weights."""


@dataclass(frozen=True)
class AlgorithmSettings(Validated):
    """Hyperparameters shared by all algorithms."""

    batch_size: Annotated[int, Bounds(ge=1, le=2**20)] = 1024
    """Number of transitions per update."""
    learning_rate: NonNegativeFloat = 1e-3
    """Learning rate of Adam, for all networks."""
    hidden_dim: Annotated[int, Bounds(ge=2, le=2**14)] = 256
    """Width of the actor and of the monolithic critic. Other critics match its parameter count."""
    precision: Precision = "float32"
    """Type of hidden layers during updates; `auto` is bfloat16 where the hardware supports it."""


class Algorithm(nn.Module, ABC):
    """Abstract base class of learning algorithms: networks, losses and optimizers.

    States and goals are normalized; actions are in [-1, 1]. All randomness comes from generators
    that a checkpoint saves. All state is in `state_dict` and in the optimizers.
    """

    Settings: ClassVar[type[AlgorithmSettings]] = AlgorithmSettings
    """Hyperparameters. Bounds are on the fields; field docstrings are the help texts."""
    METRICS: ClassVar[tuple[str, ...]]
    """Names of the metrics that `update` returns: columns of metrics.csv after the common ones."""
    uses_critic: ClassVar[bool] = True
    """Whether the algorithm builds critics. If not, its runs have the critic `none`."""
    uses_relabeled: ClassVar[bool] = False
    """Whether `update` needs `Batch.relabeled`, a copy of the batch with every goal relabeled."""
    imagines_goals: ClassVar[bool] = False
    """Whether `imagine` predicts goals, for the strategy `imagined` of `goal_mix`. If so, `update`
    gets `Batch.achieved_change`."""
    trajectory_sampling: TrajectorySampling | None = None
    """How to sample `Batch.trajectory`, which `update` needs; None if it does not."""

    actor: nn.Module
    """Deterministic policy: maps states and goals to actions."""
    critic: Critic | None
    """Critic to inspect, or None."""
    discount: float
    """Discount factor of the critic; 1 without a critic."""
    is_log_occupancy: ClassVar[bool] = False
    """Whether -Q is minus the log of a discounted occupancy, not a discounted number of steps."""

    def __init__(self, dims: Dims, make_critic: CriticFactory, settings: AlgorithmSettings) -> None:
        """Initialize without networks; subclasses add them.

        Args:
            dims: Sizes of states, actions and goals.
            make_critic: Factory to call once per critic.
            settings: Instance of the class's `Settings`.
        """
        super().__init__()
        self.critic, self.discount = None, 1.0

    @classmethod
    def can_use(cls, critic: str) -> bool:
        """Return whether the algorithm can use the built-in critic of this name."""
        return cls.uses_critic

    @property
    @abstractmethod
    def optimizers(self) -> dict[str, Adam]:
        """Return the optimizers by the names under which checkpoints save them."""

    @abstractmethod
    def update(self, batch: Batch, update_step: int, generator: torch.Generator) -> Tensor:
        """Take one gradient step.

        Args:
            batch: Normalized transitions.
            update_step: Number of this update in the run, from 1; delayed updates depend on it.
            generator: Source of all randomness in this update.

        Returns:
            The values of `METRICS`, shape (len(METRICS),), on the device and not synchronized.
        """

    def imagine(
        self, state: Tensor, goal: Tensor, uniform: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Predict the goals that the policy would achieve from given states; see `imagines_goals`.

        Args:
            state: Normalized states, (B, state).
            goal: Normalized goals that the policy pursues, (B, goal).
            uniform: Random numbers in [0, 1), (B,), that determine the number of steps.
            generator: Source of further randomness.

        Returns:
            The changes of the achieved goals, in their standard deviations, (B, goal), and the
            numbers of steps that they take, (B,), int32; 0 steps change nothing.
        """
        raise NotImplementedError

    def end_cycle(self) -> None:
        """Run periodic work at the end of a cycle, after its updates."""

    def check_restored(self) -> None:
        """Warn if the state restored from a checkpoint would give different results."""

    @abstractmethod
    def explorer(self, steps: int, num_envs: int, generator: torch.Generator) -> Explorer:
        """Return the exploration policy for `steps` steps; all noise is drawn in advance."""

    @torch.no_grad()
    def act(self, state: Tensor, goal: Tensor) -> Tensor:
        """Return the actions of the policy without exploration, shape (B, action)."""
        return self.actor(state, goal)
