"""Whole episodes on the training device, in one ring of rows.

A row is a moment: an observation, the goal, and the action taken there. An episode of L
transitions takes L + 1 consecutive rows (modulo the ring), the last one without an action: no
observation is stored twice. Every row knows how far it is from both ends of its episode, which is
all that hindsight needs; so a sample costs the same however full the buffer is.
"""

from collections import deque
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mrn.envs.tasks import TaskShape
from mrn.errors import UserError


class Episodes(NamedTuple):
    """N episodes side by side on the host; rows beyond an episode's length mean nothing."""

    state: np.ndarray  # (N, T + 1, state)
    achieved: np.ndarray  # (N, T + 1, goal)
    goal: np.ndarray  # (N, T + 1, goal)
    action: np.ndarray  # (N, T, action), in [-1, 1]
    success: np.ndarray  # (N, T), after each action
    length: np.ndarray  # (N,), transitions
    terminated: np.ndarray  # (N,), whether the environment, not the clock, ended it

    @classmethod
    def allocate(cls, shape: TaskShape, num_envs: int) -> "Episodes":
        """Arrays to be filled in place, again and again."""
        n, t = num_envs, shape.horizon
        return cls(
            state=np.zeros((n, t + 1, shape.state_dim), np.float32),
            achieved=np.zeros((n, t + 1, shape.goal_dim), np.float32),
            goal=np.zeros((n, t + 1, shape.goal_dim), np.float32),
            action=np.zeros((n, t, shape.action_dim), np.float32),
            success=np.zeros((n, t), bool),
            length=np.zeros(n, np.int64),
            terminated=np.zeros(n, bool),
        )


class ReplayBuffer:
    """A ring of rows that holds as many whole episodes as fit, the newest ones."""

    def __init__(
        self, shape: TaskShape, capacity: int, device: torch.device, at_once: int = 1
    ) -> None:
        """Allocate all memory once.

        Args:
            shape: Sizes of what is stored.
            capacity: Transitions to hold, in episodes of full length.
            device: Where to hold them.
            at_once: Episodes that one `add` brings, at most.
        """
        if capacity < at_once * shape.horizon:
            raise UserError(
                f"capacity must be at least the {at_once} episodes of {shape.horizon} transitions "
                f"that are stored at once ({at_once * shape.horizon}), got {capacity}"
            )
        self.rows = capacity // shape.horizon * (shape.horizon + 1)

        def table(width: int) -> Tensor:
            return torch.zeros(self.rows, width, device=device)

        def column(dtype: torch.dtype) -> Tensor:
            return torch.zeros(self.rows, dtype=dtype, device=device)

        self.state, self.action = table(shape.state_dim), table(shape.action_dim)
        self.achieved, self.goal = table(shape.goal_dim), table(shape.goal_dim)
        self.since_start, self.until_end = column(torch.int32), column(torch.int32)
        self.terminated = column(torch.bool)  # of the transition that leaves this row
        self.transitions = column(torch.int32)  # ring of the rows that have an action, in order
        self.head = 0  # next row to write
        self.first = self.last = 0  # transitions first .. last - 1 are stored, counted from ever
        self.lengths: deque[int] = deque()  # of the stored episodes, oldest first

    def __len__(self) -> int:
        """Transitions stored."""
        return self.last - self.first

    @property
    def nbytes(self) -> int:
        """Memory of all tables."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, Tensor))

    def add(self, episodes: Episodes) -> None:
        """Store episodes, dropping as many of the oldest whole ones as needed."""
        steps = np.arange(episodes.state.shape[1])
        length = episodes.length[:, None]  # (N, 1)
        is_row, has_action = steps <= length, steps < length  # (N, T + 1)
        count = int(is_row.sum())
        free = self.rows - len(self) - len(self.lengths)
        while free < count:
            dropped = self.lengths.popleft()
            self.first += dropped
            free += dropped + 1
        rows = (self.head + np.arange(count)) % self.rows
        self._write(self.state, rows, episodes.state[is_row])
        self._write(self.achieved, rows, episodes.achieved[is_row])
        self._write(self.goal, rows, episodes.goal[is_row])
        since_start = np.broadcast_to(steps, is_row.shape)
        self._write(self.since_start, rows, since_start[is_row])
        self._write(self.until_end, rows, (length - steps)[is_row])
        ends = (steps == length - 1) & episodes.terminated[:, None]
        self._write(self.terminated, rows, ends[is_row])
        with_action = rows[has_action[is_row]]
        self._write(self.action, with_action, episodes.action[has_action[:, :-1]])
        order = (self.last + np.arange(len(with_action))) % self.rows
        self._write(self.transitions, order, with_action)
        self.head = (self.head + count) % self.rows
        self.last += len(with_action)
        self.lengths.extend(episodes.length.tolist())

    def draw(self, uniform: Tensor) -> Tensor:
        """Rows of stored transitions, each as likely as the others, from numbers in [0, 1)."""
        return self.row_of(self.first % self.rows + (uniform * len(self)).int())

    def newest(self, count: int) -> Tensor:
        """Rows of the last `count` transitions stored."""
        start = (self.last - count) % self.rows
        numbers = torch.arange(count, dtype=torch.int32, device=self.state.device)
        return self.row_of(start + numbers)

    def row_of(self, place: Tensor) -> Tensor:
        """Rows of transitions by their place in the ring of transitions, or beyond its end."""
        return self.transitions.index_select(0, place % self.rows)

    @staticmethod
    def _write(table: Tensor, rows: np.ndarray, values: np.ndarray) -> None:
        index = torch.from_numpy(rows).to(table.device)
        table[index] = torch.from_numpy(values).to(table.device, table.dtype)
