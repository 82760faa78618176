"""Interface between a checkpoint and the trainer whose state it stores."""

from typing import Any, Protocol

from torch import Tensor

from mrn.config import Config
from mrn.distributed import Ranks
from mrn.replay import ReplayBuffer


class TrainingState(Protocol):
    """State of a run between two cycles. `mrn.training.trainer.Trainer` implements it."""

    epoch: int
    """The current epoch, from 1."""
    cycle: int
    """Completed cycles of the current epoch."""

    @property
    def config(self) -> Config:
        """Settings of the run."""

    @property
    def ranks(self) -> Ranks:
        """Ranks that train the run."""

    @property
    def replay(self) -> ReplayBuffer:
        """Replay buffer of this rank."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the algorithm's metrics."""

    def counters(self) -> dict[str, Any]:
        """Return the counters by name, including the clock."""

    def tensors(self) -> dict[str, Tensor]:
        """Return all tensors by name, except for the replay buffer."""

    def is_rank_local(self, name: str) -> bool:
        """Return whether a tensor differs between ranks."""

    def fingerprint(self) -> str:
        """Return a checksum of all tensors that the ranks share."""

    def restore(self, tensors: dict[str, Tensor], counters: dict[str, Any]) -> None:
        """Load the state that `tensors` and `counters` returned."""
