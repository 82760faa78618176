"""The paper's 12 tasks, further ones that EnvPool has, and how any other becomes one."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np

from mrn.envs.rewards import FetchReward, HandReward, Reward
from mrn.utils.errors import UserError
from mrn.utils.validation import Bounds, Validated

DEFAULT_EPOCHS = 50
"""Epochs for an environment of the user's own."""

MOST = 10**7
"""Values of a vector and steps of an episode, at most: more is what no machine holds."""

Size = Annotated[int, Bounds(ge=1, le=MOST)]


@dataclass(frozen=True)
class TaskSpec(Validated):
    """What a policy has to know of its task, saved with its weights: plain JSON values."""

    name: str
    env_id: str
    state_dim: Size
    goal_dim: Size
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]
    horizon: Size
    """Steps in an episode, at most."""
    reward_shift: Annotated[float, Bounds(ge=-1, le=0)] = 0.0
    """Added to the environment's rewards."""
    action_dtype: Literal["float32", "float64"] = "float32"
    """Of the environment's actions."""
    env_kwargs: dict[str, Any] = field(default_factory=dict, hash=False)
    """What the environment's constructor is given."""

    def __post_init__(self) -> None:
        """Refuse what no task has: a file that says so is damaged, or forged."""
        super().__post_init__()
        low, high = self.action_low, self.action_high
        if not low or len(low) != len(high):
            raise UserError(
                "action_low and action_high must have the same number of values, at least one, got "
                f"{len(low)} and {len(high)}"
            )
        # One that cannot be moved has the same bounds.
        if wrong := [pair for pair in zip(low, high, strict=True) if pair[0] > pair[1]]:
            raise UserError(
                f"action_low must not be above action_high, got {wrong[0][0]:g} and {wrong[0][1]:g}"
            )

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

    spec: TaskSpec
    reward: Reward
    epochs: int = DEFAULT_EPOCHS


def _task(
    name: str,
    env_id: str,
    sizes: tuple[int, int, int],
    horizon: int,
    reward: Reward,
    epochs: int = DEFAULT_EPOCHS,
) -> Task:
    """A task from its sizes: state, goal and action."""
    state, goal, action = sizes
    low, high = (-1.0,) * action, (1.0,) * action
    return Task(TaskSpec(name, env_id, state, goal, low, high, horizon), reward, epochs)


def _fetch(name: str, env_id: str, state_dim: int = 25, epochs: int = 50) -> Task:
    return _task(name, env_id, (state_dim, 3, 4), 50, FetchReward(), epochs)


def _hand(name: str, reward: HandReward, epochs: int) -> Task:
    return _task(name, f"HandManipulate{name}-v1", (61, 7, 20), 100, reward, epochs)


_ROTATE, _FULL = HandReward(), HandReward(position_threshold=0.01)
_PEN_ROTATE = HandReward(ignore_z=True)
_PEN_FULL = HandReward(position_threshold=0.05, ignore_z=True)

TASKS: dict[str, Task] = {
    task.spec.name: task
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
"""The paper's, by its names."""


def _further(
    env_id: str,
    sizes: tuple[int, int, int],
    horizon: int,
    reward: Reward,
    reward_shift: float = 0.0,
) -> Task:
    """A task that goes by its id, with the version or without."""
    task = _task(env_id.rpartition("-")[0], env_id, sizes, horizon, reward)
    return replace(task, spec=replace(task.spec, reward_shift=reward_shift))


_TOUCHED = {
    "Block": _FULL,
    "BlockRotateZ": _ROTATE,
    "BlockRotateParallel": _ROTATE,
    "BlockRotateXYZ": _ROTATE,
    "Egg": _FULL,
    "EggRotate": _ROTATE,
    "Pen": _PEN_FULL,
    "PenRotate": _PEN_ROTATE,
}
_SENSORS = ("BooleanTouchSensors", "ContinuousTouchSensors")  # 92 of them
_MAZES = {
    "UMaze": 300,
    **{
        f"{size}{goals}": steps
        for size, steps in (("Open", 300), ("Medium", 600), ("Large", 800))
        for goals in ("", "_Diverse_G", "_Diverse_GR")
    },
}

EXTRA_TASKS: dict[str, Task] = {
    task.spec.name: task
    for task in (
        _further("HandReach-v3", (63, 15, 20), 50, FetchReward(0.01)),
        *(
            _further(f"HandManipulate{thing}-v1", (61, 7, 20), 100, _TOUCHED[thing])
            for thing in ("Block", "Egg", "Pen")
        ),
        *(
            _further(f"HandManipulate{thing}_{kind}-v1", (61 + 92, 7, 20), 100, reward)
            for thing, reward in _TOUCHED.items()
            for kind in _SENSORS
        ),
        *(
            # They pay 1 at the goal and 0 elsewhere.
            _further(f"PointMaze_{maze}-v3", (4, 2, 2), steps, FetchReward(0.45), -1.0)
            for maze, steps in _MAZES.items()
        ),
    )
}
"""What else EnvPool simulates, by their ids without the version."""

DENSE = (
    *(f"Fetch{thing}Dense-v4" for thing in ("Reach", "Push", "PickAndPlace")),
    "HandReachDense-v3",
    *(f"PointMaze_{maze}Dense-v3" for maze in _MAZES),
)
"""Ids that EnvPool simulates, too, and whose rewards are the environments' own.

The Hand's other dense rewards leave [-1, 0].
"""

ON_ENVPOOL = frozenset(
    [*(task.spec.env_id for task in (*TASKS.values(), *EXTRA_TASKS.values())), *DENSE]
)
"""Ids that EnvPool simulates as Gymnasium-Robotics does: a test copies states and compares.

It has older versions' ids as well, but simulates the newest under them: those are not offered.
"""


def find_task(
    name: str, reward_shift: float = 0.0, env_kwargs: Mapping[str, Any] | None = None
) -> Task:
    """The task of that name, or of that Gymnasium id.

    Those that `mrn tasks` lists are found by either.

    Raises:
        UserError: There is no such task or environment, or it is no goal environment.
    """
    if task := native_task(name, reward_shift, env_kwargs):
        return task
    from mrn.envs.custom import task_of  # Gymnasium is only needed for a user's own environment

    return task_of(*resolve_env_id(name, reward_shift), env_kwargs)


def _known(name: str) -> Task | None:
    """The task of that name or Gymnasium id that is listed here."""
    for task in (*TASKS.values(), *EXTRA_TASKS.values()):
        if name in (task.spec.name, task.spec.env_id):
            return task
    return None


def resolve_env_id(name: str, reward_shift: float = 0.0) -> tuple[str, float]:
    """The Gymnasium id of an environment, and the shift of its reward where none is given."""
    task = _known(name)
    if task is None:
        return name, reward_shift
    return task.spec.env_id, reward_shift or task.spec.reward_shift


def native_task(
    name: str, reward_shift: float = 0.0, env_kwargs: Mapping[str, Any] | None = None
) -> Task | None:
    """The task of that name or Gymnasium id that is known here; None for any other.

    With arguments of its constructor, an environment beside the paper's is one of the user's own.

    Raises:
        UserError: It is one, and something is asked of it that is for others.
    """
    task = _known(name)
    if task is None or (env_kwargs and task.spec.name in EXTRA_TASKS):
        return None
    if env_kwargs or reward_shift not in (0, task.spec.reward_shift):
        what = "env_kwargs" if env_kwargs else "reward_shift"
        raise UserError(f"{what} is for environments of your own, not for {name}")
    return task
