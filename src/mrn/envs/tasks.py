"""The paper's 12 tasks, and how any other Gymnasium goal environment becomes a task."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np

from mrn.checked import Checked, Count, Limits
from mrn.envs.rewards import FetchReward, HandReward, Reward
from mrn.errors import UserError

DEFAULT_EPOCHS = 50
"""Epochs for an environment of the user's own."""


@dataclass(frozen=True)
class TaskShape(Checked):
    """What a policy has to know of its task, saved with its weights: plain JSON values."""

    name: str
    env_id: str
    state_dim: Count
    goal_dim: Count
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]
    horizon: Count
    """Steps in an episode, at most."""
    reward_shift: Annotated[float, Limits(least=-1, most=0)] = 0.0
    """Added to the environment's rewards."""
    action_dtype: Literal["float32", "float64"] = "float32"
    """Of the environment's actions."""
    env_kwargs: dict[str, Any] = field(default_factory=dict, hash=False)
    """What the environment's constructor is given."""

    @property
    def action_dim(self) -> int:
        """Length of the action vector."""
        return len(self.action_low)

    def to_bounds(self, action: np.ndarray) -> np.ndarray:
        """Actions in [-1, 1] in the environment's own units; rounding does not leave the bounds."""
        low, high = np.asarray(self.action_low), np.asarray(self.action_high)
        dtype = np.dtype(self.action_dtype)
        scaled = ((low + high) / 2 + (high - low) / 2 * action).astype(dtype)
        return scaled.clip(low.astype(dtype), high.astype(dtype))


@dataclass(frozen=True)
class Task:
    """A goal-reaching task: its shape, its reward, and how long the paper trains on it."""

    shape: TaskShape
    reward: Reward
    epochs: int = DEFAULT_EPOCHS


def _fetch(name: str, env_id: str, state_dim: int = 25, epochs: int = 50) -> Task:
    low, high = (-1.0,) * 4, (1.0,) * 4
    return Task(TaskShape(name, env_id, state_dim, 3, low, high, 50), FetchReward(), epochs)


def _hand(name: str, reward: HandReward, epochs: int) -> Task:
    low, high = (-1.0,) * 20, (1.0,) * 20
    env_id = f"HandManipulate{name}-v1"
    return Task(TaskShape(name, env_id, 61, 7, low, high, 100), reward, epochs)


_ROTATE, _FULL = HandReward(), HandReward(position_threshold=0.01)
_PEN_ROTATE = HandReward(ignore_z=True)
_PEN_FULL = HandReward(position_threshold=0.05, ignore_z=True)

TASKS: dict[str, Task] = {
    task.shape.name: task
    for task in (
        _fetch("FetchReach", "FetchReach-v4", state_dim=10, epochs=25),
        _fetch("FetchPush", "FetchPush-v4"),
        _fetch("FetchSlide", "FetchSlide-v4"),
        _fetch("FetchPick", "FetchPickAndPlace-v4"),
        _hand("BlockRotateZ", _ROTATE, epochs=50),
        _hand("BlockRotateParallel", _ROTATE, epochs=100),
        _hand("BlockRotateXYZ", _ROTATE, epochs=100),
        _hand("BlockFull", _FULL, epochs=100),
        _hand("EggRotate", _ROTATE, epochs=50),
        _hand("EggFull", _FULL, epochs=100),
        _hand("PenRotate", _PEN_ROTATE, epochs=50),
        _hand("PenFull", _PEN_FULL, epochs=100),
    )
}


def find_task(
    name: str, reward_shift: float = 0.0, env_kwargs: Mapping[str, Any] | None = None
) -> Task:
    """The task of that name, or of that Gymnasium id.

    The paper's tasks are found by either.

    Raises:
        UserError: There is no such task or environment, or it is no goal environment.
    """
    if task := native_task(name, reward_shift, env_kwargs):
        return task
    from mrn.envs.custom import task_of  # Gymnasium is only needed for a user's own environment

    return task_of(name, reward_shift, env_kwargs)


def native_task(
    name: str, reward_shift: float = 0.0, env_kwargs: Mapping[str, Any] | None = None
) -> Task | None:
    """The paper's task of that name or Gymnasium id; None for any other.

    Raises:
        UserError: It is one, and something is asked of it that is for others.
    """
    for task in TASKS.values():
        if name in (task.shape.name, task.shape.env_id):
            if reward_shift or env_kwargs:
                what = "reward_shift" if reward_shift else "env_kwargs"
                raise UserError(f"{what} is for environments of your own, not for {name}")
            return task
    return None
