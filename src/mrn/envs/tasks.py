"""The paper's 12 tasks, the additional EnvPool tasks, and the lookup of any task by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
import torch

from mrn.envs.rewards import FetchReward, HandReward, Reward, Success
from mrn.utils.errors import UserError
from mrn.utils.json_tables import to_json_types
from mrn.utils.validation import Bounds, Validated

DEFAULT_EPOCHS = 50
"""Number of epochs for custom environments."""

OBJECT_PREFIX = "object/"
"""Namespace of environments that were passed as Python objects (see `objects.py`)."""

MAX_SIZE = 10**7
"""Maximum length of a vector or an episode; larger ones would not fit in memory."""

Size = Annotated[int, Bounds(ge=1, le=MAX_SIZE)]


@dataclass(frozen=True)
class TaskSpec(Validated):
    """Description of a task that is saved with a policy's weights, as plain JSON values."""

    name: str
    env_id: str
    state_dim: Size
    goal_dim: Size
    action_low: tuple[float, ...]
    action_high: tuple[float, ...]
    horizon: Size
    """Maximum number of steps per episode."""
    reward_shift: Annotated[float, Bounds(ge=-1, le=0)] = 0.0
    """Constant added to the environment's rewards."""
    action_dtype: Literal["float32", "float64"] = "float32"
    """Data type of the environment's actions."""
    env_kwargs: dict[str, Any] = field(default_factory=dict, hash=False)
    """Keyword arguments for the environment's constructor."""

    def __post_init__(self) -> None:
        """Reject invalid values, which only a damaged or forged file has."""
        super().__post_init__()
        to_json_types("env_kwargs", self.env_kwargs)
        low, high = self.action_low, self.action_high
        if not low or len(low) != len(high):
            raise UserError(
                "action_low and action_high must have the same number of values, at least one, got "
                f"{len(low)} and {len(high)}"
            )
        # Equal bounds are valid: they fix that value of the action.
        if invalid := [pair for pair in zip(low, high, strict=True) if pair[0] > pair[1]]:
            raise UserError(
                "action_low must not be above action_high, got "
                f"{invalid[0][0]:g} and {invalid[0][1]:g}"
            )

    @property
    def action_dim(self) -> int:
        """Length of the action vector."""
        return len(self.action_low)

    def to_bounds(self, action: np.ndarray) -> np.ndarray:
        """Scale actions from [-1, 1] to the environment's bounds, which rounding never exceeds."""
        low, high = np.asarray(self.action_low), np.asarray(self.action_high)
        dtype = np.dtype(self.action_dtype)
        scaled = ((low + high) / 2 + (high - low) / 2 * action).astype(dtype)
        return scaled.clip(low.astype(dtype), high.astype(dtype))


@dataclass(frozen=True)
class Task:
    """A goal-reaching task: its specification, reward and default number of epochs."""

    spec: TaskSpec
    reward: Reward
    epochs: int = DEFAULT_EPOCHS
    success: Success | None = None
    """Whether goals are reached; by default where the reward is 0."""

    def is_at_goal(self, achieved: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """Return whether achieved goals (N, goal) reach a goal (goal,), shape (N,)."""
        achieved_goals = torch.as_tensor(achieved, dtype=torch.float64)
        desired_goals = torch.as_tensor(goal).double().expand_as(achieved_goals)
        if self.success is not None:
            return self.success(achieved_goals, desired_goals).numpy()
        return (self.reward(achieved_goals, desired_goals) >= 0).numpy()


def _task(
    name: str,
    env_id: str,
    sizes: tuple[int, int, int],
    horizon: int,
    reward: Reward,
    epochs: int = DEFAULT_EPOCHS,
) -> Task:
    """Create a task with actions in [-1, 1] from its sizes: state, goal and action."""
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
"""The tasks of the paper, by its names."""


def _extra(
    env_id: str,
    sizes: tuple[int, int, int],
    horizon: int,
    reward: Reward,
    reward_shift: float = 0.0,
) -> Task:
    """Create a task that is named by its id without the version."""
    task = _task(env_id.rpartition("-")[0], env_id, sizes, horizon, reward)
    return replace(task, spec=replace(task.spec, reward_shift=reward_shift))


_TOUCH_REWARDS = {
    "Block": _FULL,
    "BlockRotateZ": _ROTATE,
    "BlockRotateParallel": _ROTATE,
    "BlockRotateXYZ": _ROTATE,
    "Egg": _FULL,
    "EggRotate": _ROTATE,
    "Pen": _PEN_FULL,
    "PenRotate": _PEN_ROTATE,
}
_TOUCH_SENSORS = ("BooleanTouchSensors", "ContinuousTouchSensors")  # 92 sensors
_MAZE_HORIZONS = {
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
        _extra("HandReach-v3", (63, 15, 20), 50, FetchReward(0.01)),
        *(
            _extra(f"HandManipulate{name}-v1", (61, 7, 20), 100, _TOUCH_REWARDS[name])
            for name in ("Block", "Egg", "Pen")
        ),
        *(
            _extra(f"HandManipulate{name}_{sensors}-v1", (61 + 92, 7, 20), 100, reward)
            for name, reward in _TOUCH_REWARDS.items()
            for sensors in _TOUCH_SENSORS
        ),
        *(
            # Their reward is 1 at the goal and 0 elsewhere.
            _extra(f"PointMaze_{maze}-v3", (4, 2, 2), steps, FetchReward(0.45), -1.0)
            for maze, steps in _MAZE_HORIZONS.items()
        ),
    )
}
"""Additional tasks that EnvPool simulates, by their ids without the version."""

DENSE = (
    *(f"Fetch{name}Dense-v4" for name in ("Reach", "Push", "PickAndPlace")),
    "HandReachDense-v3",
    *(f"PointMaze_{maze}Dense-v3" for maze in _MAZE_HORIZONS),
)
"""Ids of dense-reward environments that EnvPool simulates; the reward is the environment's own.

The other dense rewards of the Hand are not within [-1, 0].
"""

ENVPOOL_ENV_IDS = frozenset(
    [*(task.spec.env_id for task in (*TASKS.values(), *EXTRA_TASKS.values())), *DENSE]
)
"""Ids that EnvPool simulates like Gymnasium-Robotics, which tests verify from copied states.

EnvPool also accepts ids of older versions, but simulates the newest version under them. Those are
not included.
"""


def find_task(
    name: str, reward_shift: float = 0.0, env_kwargs: Mapping[str, Any] | None = None
) -> Task:
    """Return a task by its name or Gymnasium id.

    Args:
        name: A task that `mrn tasks` lists, or the id of a custom environment.
        reward_shift: Constant added to the rewards of a custom environment.
        env_kwargs: Keyword arguments for the environment's constructor.

    Raises:
        UserError: The task is unknown, or the environment is not supported.
    """
    if task := native_task(name, reward_shift, env_kwargs):
        return task
    from mrn.envs.custom import make_custom_task  # only custom environments need Gymnasium

    return make_custom_task(*resolve_env_id(name, reward_shift), env_kwargs)


def _find_builtin(name: str) -> Task | None:
    """Return a built-in task by its name or Gymnasium id, or None."""
    for task in (*TASKS.values(), *EXTRA_TASKS.values()):
        if name in (task.spec.name, task.spec.env_id):
            return task
    return None


def passes_arguments(name: Any, env_kwargs: Any) -> bool:
    """Return whether a third-party constructor gets arguments, which may name code to import.

    Both values may be untrusted. Constructors of built-in environments import nothing.
    """
    return bool(env_kwargs) and name not in ENVPOOL_ENV_IDS and _find_builtin(name) is None


def resolve_env_id(name: str, reward_shift: float = 0.0) -> tuple[str, float]:
    """Return the Gymnasium id of a task and its reward shift, by default the task's own."""
    task = _find_builtin(name)
    if task is None:
        return name, reward_shift
    return task.spec.env_id, reward_shift or task.spec.reward_shift


def native_task(
    name: str, reward_shift: float = 0.0, env_kwargs: Mapping[str, Any] | None = None
) -> Task | None:
    """Return a built-in task by its name or Gymnasium id, or None for a custom environment.

    An additional task with `env_kwargs` counts as a custom environment.

    Raises:
        UserError: The task is built in, but a setting for custom environments is given.
    """
    task = _find_builtin(name)
    if task is None or (env_kwargs and task.spec.name in EXTRA_TASKS):
        return None
    if env_kwargs or reward_shift not in (0, task.spec.reward_shift):
        setting = "env_kwargs" if env_kwargs else "reward_shift"
        raise UserError(f"{setting} only applies to custom environments, not to {name}")
    return task
