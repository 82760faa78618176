"""Batched sparse rewards of the built-in tasks, on the device: 0 at the goal, -1 elsewhere.

Row by row they equal `env.unwrapped.compute_reward` of Gymnasium-Robotics. Three quirks of that
method are kept for comparability:

- Fetch counts a distance equal to the threshold as reached; the Hand does not.
- The Hand's rotation error is 2 arccos(w), without |w|. The quaternions q and -q therefore differ,
  although they are the same rotation.
- The Pen's rotation is rebuilt from Euler angles, which may yield -q for the goal q. No pose
  reaches such a goal unless its angle x is within the threshold of +-pi. This makes 7% of all goals
  unreachable (`scripts/hand.py`).

One is not kept: its batched reward for the Pen overwrites row 2 of the batch instead of column 2 of
the angles.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Reward = Callable[[Tensor, Tensor], Tensor]
"""Maps achieved and desired goals, both (B, goal), to rewards (B,) in [-1, 0]."""
Success = Callable[[Tensor, Tensor], Tensor]
"""Maps achieved and desired goals, both (B, goal), to success (B,), boolean."""


@dataclass(frozen=True)
class FetchReward:
    """Reward 0 within a threshold distance of the goal position, -1 elsewhere.

    HandReach (positions of five fingertips) and the mazes also use it.
    """

    threshold: float = 0.05

    def __call__(self, achieved: Tensor, desired: Tensor) -> Tensor:
        """Return the rewards of positions of shape (B, goal)."""
        distance = torch.linalg.vector_norm(achieved - desired, dim=-1)
        return -(distance > self.threshold).to(achieved.dtype)


@dataclass(frozen=True)
class HandReward:
    """Reward 0 where an object has the goal's rotation (and position, if used), -1 elsewhere."""

    position_threshold: float | None = None
    rotation_threshold: float = 0.1
    ignore_z: bool = False
    """Ignore rotation about the z axis, the axis of the pen."""

    def __call__(self, achieved: Tensor, desired: Tensor) -> Tensor:
        """Return the rewards of poses of shape (B, 7): position, then quaternion (w, x, y, z)."""
        rotation, goal_rotation = achieved[..., 3:], desired[..., 3:]
        if self.ignore_z:
            rotation = _replace_z_angle(rotation, goal_rotation)
        # The real part of rotation * conjugate(goal_rotation) is their inner product.
        w = (rotation * goal_rotation).sum(dim=-1).clamp(-1, 1)
        reached = 2 * torch.arccos(w) < self.rotation_threshold
        if self.position_threshold is not None:
            distance = torch.linalg.vector_norm(achieved[..., :3] - desired[..., :3], dim=-1)
            reached = reached & (distance < self.position_threshold)
        return reached.to(achieved.dtype) - 1


def _replace_z_angle(q: Tensor, other: Tensor) -> Tensor:
    """Return the quaternion q = Rx Ry Rz with the angle of Rz replaced by that of `other`."""
    x, y, _ = _euler_angles(q)
    _, _, z = _euler_angles(other)
    (cx, cy, cz), (sx, sy, sz) = (
        [f(angle / 2) for angle in (x, y, z)] for f in (torch.cos, torch.sin)
    )
    return torch.stack(
        [
            cx * cy * cz - sx * sy * sz,
            sx * cy * cz + cx * sy * sz,
            cx * sy * cz - sx * cy * sz,
            cx * cy * sz + sx * sy * cz,
        ],
        dim=-1,
    )


def _euler_angles(q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the angles (x, y, z) of the rotation Rx(x) Ry(y) Rz(z), as MuJoCo defines them."""
    w, i, j, k = (q / torch.linalg.vector_norm(q, dim=-1, keepdim=True)).unbind(dim=-1)
    # The required entries of the rotation matrix Rx Ry Rz.
    m00, m01, m02 = 1 - 2 * (j * j + k * k), 2 * (i * j - w * k), 2 * (i * k + w * j)
    m10, m11, m12 = 2 * (i * j + w * k), 1 - 2 * (i * i + k * k), 2 * (j * k - w * i)
    m22 = 1 - 2 * (i * i + j * j)
    cos_y = torch.hypot(m22, m12)
    # Gimbal lock: if y is a right angle, x and z share an axis, and z gets the whole angle.
    regular = cos_y > 4 * torch.finfo(torch.float64).eps
    x = torch.where(regular, torch.atan2(-m12, m22), 0)
    y = torch.atan2(m02, cos_y)
    z = torch.where(regular, torch.atan2(-m01, m00), torch.atan2(m10, m11))
    return x, y, z
