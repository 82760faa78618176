"""The sparse rewards of the listed tasks, batched, on the device: 0 at the goal, -1 elsewhere.

They equal `env.unwrapped.compute_reward` of Gymnasium-Robotics row by row. Three of its facts are
kept on purpose, for comparability: Fetch counts a distance equal to the threshold as reached, the
Hand does not; the Hand's rotation error is 2 arccos(w) without |w|, so that the quaternions q and
-q, which are the same rotation, differ; and the Pen's rotation is put together from Euler angles,
which may give -q for the goal q: unless its angle x is within the threshold of +-pi, no pose
reaches such a goal, and 7 % of all are (`benchmarks/hand.py`). One fact is not kept: its batched
reward for the Pen overwrites row 2 of the batch instead of column 2 of the angles.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Reward = Callable[[Tensor, Tensor], Tensor]
"""(achieved goals, desired goals), both (B, goal), to rewards (B,) in [-1, 0]."""


@dataclass(frozen=True)
class FetchReward:
    """0 where the position is within the threshold of the goal, -1 elsewhere.

    HandReach, whose position is that of five fingertips, and the mazes have it, too.
    """

    threshold: float = 0.05

    def __call__(self, achieved: Tensor, desired: Tensor) -> Tensor:
        """Rewards of positions of shape (B, goal)."""
        distance = torch.linalg.vector_norm(achieved - desired, dim=-1)
        return -(distance > self.threshold).to(achieved.dtype)


@dataclass(frozen=True)
class HandReward:
    """0 where an object's rotation (and position, if it counts) is the goal's, -1 elsewhere."""

    position_threshold: float | None = None
    rotation_threshold: float = 0.1
    ignore_z: bool = False
    """The pen may turn about its own axis."""

    def __call__(self, achieved: Tensor, desired: Tensor) -> Tensor:
        """Rewards of poses of shape (B, 7): position, then quaternion (w, x, y, z)."""
        rotation, goal_rotation = achieved[..., 3:], desired[..., 3:]
        if self.ignore_z:
            rotation = _with_z_of(rotation, goal_rotation)
        # The real part of rotation * conjugate(goal_rotation) is their inner product.
        w = (rotation * goal_rotation).sum(dim=-1).clamp(-1, 1)
        reached = 2 * torch.arccos(w) < self.rotation_threshold
        if self.position_threshold is not None:
            distance = torch.linalg.vector_norm(achieved[..., :3] - desired[..., :3], dim=-1)
            reached = reached & (distance < self.position_threshold)
        return reached.to(achieved.dtype) - 1


def _with_z_of(q: Tensor, other: Tensor) -> Tensor:
    """The quaternion q = Rx Ry Rz with the angle of Rz taken from the other quaternion."""
    x, y, _ = _euler(q)
    _, _, z = _euler(other)
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


def _euler(q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Angles (x, y, z) of the rotation Rx(x) Ry(y) Rz(z), MuJoCo's convention."""
    w, i, j, k = (q / torch.linalg.vector_norm(q, dim=-1, keepdim=True)).unbind(dim=-1)
    # The entries that are needed of the rotation matrix Rx Ry Rz.
    m00, m01, m02 = 1 - 2 * (j * j + k * k), 2 * (i * j - w * k), 2 * (i * k + w * j)
    m10, m11, m12 = 2 * (i * j + w * k), 1 - 2 * (i * i + k * k), 2 * (j * k - w * i)
    m22 = 1 - 2 * (i * i + j * j)
    cos_y = torch.hypot(m22, m12)
    # Where y is a right angle, x and z turn about the same axis: all of it is given to z.
    regular = cos_y > 4 * torch.finfo(torch.float64).eps
    x = torch.where(regular, torch.atan2(-m12, m22), 0)
    y = torch.atan2(m02, cos_y)
    z = torch.where(regular, torch.atan2(-m01, m00), torch.atan2(m10, m11))
    return x, y, z
