"""Validation of the observations that users pass to a policy."""

from typing import Any

import numpy as np

from mrn.envs.tasks import TaskSpec
from mrn.utils.errors import UserError


def parse_observation(observation: Any, spec: TaskSpec) -> tuple[np.ndarray, np.ndarray]:
    """Return validated copies of the state and the goal, with any number of leading axes.

    Torch rejects, or warns about, some arrays: read-only, reversed or big-endian ones.

    Raises:
        UserError: The observation does not fit the task.
    """
    name = f"the policy for {spec.name}"
    try:
        arrays = [np.asarray(observation[key]) for key in ("observation", "desired_goal")]
    except (KeyError, TypeError, IndexError):
        raise UserError(
            f"{name} needs a dictionary with the keys 'observation' and 'desired_goal', got "
            f"{list(observation) if isinstance(observation, dict) else type(observation)}"
        ) from None
    sizes = (spec.state_dim, spec.goal_dim)
    if any(x.shape[-1:] != (size,) for x, size in zip(arrays, sizes, strict=True)):
        raise UserError(
            f"{name} expects observations of {sizes[0]} and goals of {sizes[1]} values, got "
            f"shapes {arrays[0].shape} and {arrays[1].shape}"
        )
    if arrays[0].shape[:-1] != arrays[1].shape[:-1]:
        raise UserError(
            f"{name} needs one goal per observation, got shapes {arrays[0].shape} and "
            f"{arrays[1].shape}"
        )
    for key, array in zip(("observation", "desired_goal"), arrays, strict=True):
        if array.dtype.kind not in "biuf":
            raise UserError(f"{name}: {key!r} must be numeric, got {array.dtype}")
        if not np.isfinite(array).all():
            raise UserError(f"{name}: {key!r} must be finite, got {array}")
    state, goal = (np.array(array, np.float32, order="C") for array in arrays)
    return state, goal
