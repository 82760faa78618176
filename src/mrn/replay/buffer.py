"""Replay buffer: whole episodes on the training device, in one ring of rows.

A row holds one time step: observation, goal and the action taken there. An episode of L
transitions occupies L + 1 consecutive rows (modulo the ring); the last one has no action. No
observation is stored twice. Each row knows its distance to both ends of its episode, so the cost
of sampling does not depend on how full the buffer is.
"""

from collections import deque
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mrn.envs.tasks import TaskSpec
from mrn.replay.episodes import Episodes
from mrn.utils.device import memory_errors
from mrn.utils.errors import UserError

COLUMNS = ("state", "achieved", "goal", "action", "since_start", "until_end", "terminated")
"""Columns of a row, as checkpoints store them."""

MAX_TRANSITIONS = 5 * 10**8
"""Largest capacity. An episode takes one row more than it has transitions, so the ring has at most
twice as many rows. Indices up to twice the number of rows must fit into int32."""


def check_capacity(capacity: int, episodes_per_add: int, horizon: int) -> None:
    """Check that a capacity, in transitions, holds the episodes that are stored at once.

    Raises:
        UserError: The capacity is too small; the message names the minimum.
    """
    minimum = episodes_per_add * horizon
    if capacity < minimum:
        raise UserError(
            f"buffer_size must be at least {minimum} ({episodes_per_add} episodes of {horizon} "
            f"transitions stored at once), got {capacity}"
        )


class StoredTransitions(NamedTuple):
    """Transitions as the buffer stores them, tensors of shape (B, ...)."""

    state: Tensor
    action: Tensor
    goal: Tensor
    next_state: Tensor
    next_achieved: Tensor
    terminated: Tensor
    since_start: Tensor  # steps since the episode started
    until_end: Tensor  # steps until the episode ends


class ReplayBuffer:
    """Ring buffer of the newest whole episodes."""

    def __init__(
        self,
        spec: TaskSpec,
        capacity: int,
        device: torch.device,
        episodes_per_add: int = 1,
    ) -> None:
        """Allocate all memory up front.

        Args:
            spec: Sizes of states, actions and goals, and the longest episode.
            capacity: Number of transitions to hold, counted in episodes of full length.
            device: Device of the tensors.
            episodes_per_add: Largest number of episodes in one call of `add`.

        Raises:
            UserError: The capacity is too small or too large, or memory runs out.
        """
        check_capacity(capacity, episodes_per_add, spec.horizon)
        if capacity > MAX_TRANSITIONS:
            raise UserError(
                f"a process holds at most {MAX_TRANSITIONS:,} transitions, got {capacity:,}: lower "
                "buffer_size"
            )
        self.capacity, self.horizon, self.device = capacity, spec.horizon, device
        self.rows = capacity // spec.horizon * (spec.horizon + 1)
        self.state = self.allocate(spec.state_dim)
        self.action = self.allocate(spec.action_dim)
        self.achieved, self.goal = self.allocate(spec.goal_dim), self.allocate(spec.goal_dim)
        self.since_start = self.allocate(dtype=torch.int32)
        self.until_end = self.allocate(dtype=torch.int32)
        self.terminated = self.allocate(dtype=torch.bool)  # by the action taken at this row
        # Ring of the rows that have an action, in the order of storage.
        self.transitions = self.allocate(dtype=torch.int32)
        self.written = 0  # rows written in this run; the next one goes to written % rows
        self.first = self.last = 0  # transitions first .. last - 1 of the run are stored
        # Of the stored episodes, oldest first: number of transitions, and whether it terminated.
        self.lengths: deque[int] = deque()
        self.terminations: deque[bool] = deque()

    def allocate(self, *size: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return a new column: zeros of shape (rows, *size).

        Raises:
            UserError: Memory runs out.
        """
        what = f"a replay buffer of {self.capacity:,} transitions on {self.device}"
        with memory_errors(f"lower buffer_size ({what})"):
            return torch.zeros(self.rows, *size, dtype=dtype, device=self.device)

    def __len__(self) -> int:
        """Return the number of stored transitions."""
        return self.last - self.first

    @property
    def nbytes(self) -> int:
        """Return the memory of all columns in bytes."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, Tensor))

    @property
    def oldest(self) -> int:
        """Return the number of the oldest stored row, counted from the start of the run."""
        return self.written - len(self) - len(self.lengths)

    def add(self, episodes: Episodes) -> None:
        """Store episodes; drop the oldest ones to make room."""
        steps = np.arange(episodes.state.shape[1])
        length = episodes.length[:, None]  # (N, 1)
        is_row = steps <= length  # (N, T + 1)
        rows = {
            "state": episodes.state,
            "achieved": episodes.achieved,
            "goal": episodes.goal,
            "action": episodes.action,
            "since_start": np.broadcast_to(steps, is_row.shape),
            "until_end": length - steps,
            "terminated": (steps == length - 1) & episodes.terminated[:, None],
        }
        self.append({name: torch.from_numpy(values[is_row]) for name, values in rows.items()})

    def append(self, rows: dict[str, Tensor]) -> None:
        """Store the rows of whole episodes, in the format that `read` returns."""
        has_action = rows["until_end"] > 0
        lengths = rows["until_end"][rows["since_start"] == 0].tolist()
        count, transitions = len(has_action), int(has_action.sum())
        while self.written + count - self.oldest > self.rows:
            self.first += self.lengths.popleft()
            self.terminations.popleft()
        place = (self.written + torch.arange(count)) % self.rows
        for name, values in rows.items():
            column = getattr(self, name)
            column[place.to(self.device)] = values.to(self.device, column.dtype)
        order = (self.last + torch.arange(transitions)) % self.rows
        self.transitions[order.to(self.device)] = place[has_action].to(
            self.device, self.transitions.dtype
        )
        self.written += count
        self.last += transitions
        self.lengths.extend(lengths)
        self.terminations.extend(rows["terminated"][rows["until_end"] == 1].tolist())

    def read(self, start: int) -> dict[str, Tensor]:
        """Return copies on the host of the rows from number `start` of the run on."""
        place = torch.arange(start, self.written, device=self.device) % self.rows
        return {name: getattr(self, name)[place].cpu() for name in COLUMNS}

    def check(self, rows: dict[str, Tensor], count: int, skip: int, where: str) -> None:
        """Check that rows read from a file are `count` rows of whole episodes of this task.

        The rows after the first `skip` must be whole episodes, too.

        Raises:
            UserError: They are not; the message starts with `where`, the name of the file.
        """
        layout = {name: (value.dtype, tuple(value.shape)) for name, value in rows.items()}
        columns = {name: getattr(self, name) for name in COLUMNS}
        if layout != {k: (v.dtype, (count, *v.shape[1:])) for k, v in columns.items()}:
            raise UserError(f"{where}: expected {count} rows of this task's replay buffer")
        start, end = rows["since_start"], rows["until_end"]
        is_last = end == 0
        continues = (start[1:] == start[:-1] + 1) & (end[1:] == end[:-1] - 1)
        starts = (start[1:] == 0) & (end[1:] > 0)
        whole = torch.where(is_last[:-1], starts, continues).all() and is_last[-1] and start[0] == 0
        whole = whole and (skip >= count or start[skip] == 0) and end.max() <= self.horizon
        if not whole or not all(torch.isfinite(value).all() for value in rows.values()):
            raise UserError(f"{where}: the rows are not whole episodes of this task")

    def start_at(self, row: int, transition: int) -> None:
        """Set the numbers of the next row and transition; the buffer must be empty."""
        self.written, self.first, self.last = row, transition, transition

    def draw(self, uniform: Tensor) -> Tensor:
        """Return the rows of uniformly drawn transitions, from random numbers in [0, 1)."""
        return self._rows_of(self.first % self.rows + (uniform * len(self)).int())

    def newest(self, count: int) -> Tensor:
        """Return the rows of the last `count` transitions stored."""
        start = (self.last - count) % self.rows
        numbers = torch.arange(count, dtype=torch.int32, device=self.device)
        return self._rows_of(start + numbers)

    def gather(self, rows: Tensor) -> StoredTransitions:
        """Return the transitions that start at the given rows."""
        next_rows = (rows + 1) % self.rows
        return StoredTransitions(
            state=self.state.index_select(0, rows),
            action=self.action.index_select(0, rows),
            goal=self.goal.index_select(0, rows),
            next_state=self.state.index_select(0, next_rows),
            next_achieved=self.achieved.index_select(0, next_rows),
            terminated=self.terminated.index_select(0, rows),
            since_start=self.since_start.index_select(0, rows),
            until_end=self.until_end.index_select(0, rows),
        )

    def achieved_after(self, rows: Tensor, steps: Tensor) -> Tensor:
        """Return the goals achieved `steps` after the given rows of the same episodes, (B, goal).

        Negative steps look back.
        """
        return self.achieved.index_select(0, (rows + steps) % self.rows)

    def state_after(self, rows: Tensor, steps: Tensor) -> Tensor:
        """Return the states `steps` after the given rows of the same episodes, (B, state)."""
        return self.state.index_select(0, (rows + steps) % self.rows)

    def other_rows(
        self, rows: Tensor, since_start: Tensor, until_end: Tensor, uniform: Tensor
    ) -> Tensor:
        """Return a uniformly drawn row of the other stored episodes for each of the given rows.

        Without another episode, it is the first row of the same one.

        Args:
            rows: The rows, (B,).
            since_start: Steps since their episodes started, (B,).
            until_end: Steps until their episodes end, (B,).
            uniform: Random numbers in [0, 1), (B,).
        """
        oldest, stored = self.oldest % self.rows, self.written - self.oldest
        others = stored - (since_start + until_end + 1)
        # Count rows from the oldest one. Past the newest, counting continues at the oldest.
        ahead = until_end + 1 + (uniform * others).int()
        number = ((rows - oldest) % self.rows + ahead) % stored
        return (number + oldest) % self.rows

    def first_rows(self, rows: Tensor) -> Tensor:
        """Return the first row of the episode that each of the given rows belongs to."""
        return (rows - self.since_start.index_select(0, rows)) % self.rows

    def episodes_since(self, start: int) -> tuple[Tensor, Tensor]:
        """Return the first rows and the lengths of the episodes from row `start` of the run on.

        Rows are numbers in the run. The host knows them, so this does not wait for the device.
        """
        first, lengths, row = [], [], self.written
        for length in reversed(self.lengths):
            if row <= start:
                break
            row -= length + 1
            first.append(row)
            lengths.append(length)
        found = torch.tensor([first[::-1], lengths[::-1]], dtype=torch.int64)
        return tuple(found.to(self.device))

    def _rows_of(self, place: Tensor) -> Tensor:
        """Return rows by their place in the ring of transitions; places may exceed its end."""
        return self.transitions.index_select(0, place % self.rows)
