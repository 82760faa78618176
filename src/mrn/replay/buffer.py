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

from mrn.envs.rewards import Reward
from mrn.envs.tasks import TaskSpec
from mrn.utils.errors import UserError


class Episodes(NamedTuple):
    """N episodes side by side on the host; rows beyond an episode's length mean nothing."""

    state: np.ndarray  # (N, T + 1, state)
    achieved: np.ndarray  # (N, T + 1, goal)
    goal: np.ndarray  # (N, T + 1, goal)
    action: np.ndarray  # (N, T + 1, action), in [-1, 1]; none is taken after the last step
    success: np.ndarray  # (N, T), after each action
    length: np.ndarray  # (N,), transitions
    terminated: np.ndarray  # (N,), whether the environment, not the clock, ended it

    @classmethod
    def allocate(cls, spec: TaskSpec, num_envs: int) -> "Episodes":
        """Arrays to be filled in place, again and again."""
        n, t = num_envs, spec.horizon
        return cls(
            state=np.zeros((n, t + 1, spec.state_dim), np.float32),
            achieved=np.zeros((n, t + 1, spec.goal_dim), np.float32),
            goal=np.zeros((n, t + 1, spec.goal_dim), np.float32),
            action=np.zeros((n, t + 1, spec.action_dim), np.float32),
            success=np.zeros((n, t), bool),
            length=np.zeros(n, np.int64),
            terminated=np.zeros(n, bool),
        )


ROWS = ("state", "achieved", "goal", "action", "since_start", "until_end", "terminated")
"""The tables that make a row."""


LARGEST = 5 * 10**8
"""Transitions that one replay may hold. An episode takes a row more than it has transitions, so
there are at most twice as many rows; and places up to twice their number must fit into int32."""


def check_capacity(capacity: int, at_once: int, horizon: int) -> None:
    """Refuse a capacity, in transitions, that does not hold the episodes stored at once.

    Raises:
        UserError: Says the least that does.
    """
    if capacity < at_once * horizon:
        raise UserError(
            f"buffer_size must be at least the {at_once} episodes of {horizon} transitions that are "
            f"stored at once ({at_once * horizon}), got {capacity}"
        )


class ReplayBuffer:
    """A ring of rows that holds as many whole episodes as fit, the newest ones."""

    def __init__(
        self,
        spec: TaskSpec,
        capacity: int,
        device: torch.device,
        at_once: int = 1,
        reward: Reward | None = None,
    ) -> None:
        """Allocate all memory once.

        Args:
            spec: Sizes of what is stored.
            capacity: Transitions to hold, in episodes of full length.
            device: Where to hold them.
            at_once: Episodes that one `add` brings, at most.
            reward: The task's, which tells in which episodes something moved: where what was
                achieved at the end does not count as achieved at the start.
        """
        check_capacity(capacity, at_once, spec.horizon)
        if capacity > LARGEST:
            raise UserError(
                f"a process holds at most {LARGEST:,} transitions, got {capacity:,}: lower "
                "buffer_size"
            )
        self.horizon, self.reward = spec.horizon, reward
        self.rows = capacity // spec.horizon * (spec.horizon + 1)

        def table(width: int) -> Tensor:
            return torch.zeros(self.rows, width, device=device)

        def column(dtype: torch.dtype) -> Tensor:
            return torch.zeros(self.rows, dtype=dtype, device=device)

        try:
            self.state, self.action = table(spec.state_dim), table(spec.action_dim)
            self.achieved, self.goal = table(spec.goal_dim), table(spec.goal_dim)
            self.since_start, self.until_end = column(torch.int32), column(torch.int32)
            self.terminated = column(torch.bool)  # of the transition that leaves this row
            self.moved = column(torch.bool)  # of the episode; follows from the other tables
            self.transitions = column(torch.int32)  # ring of rows that have an action, in order
        except RuntimeError as error:
            raise UserError(
                f"no memory for a replay of {capacity:,} transitions on {device}; lower buffer_size"
            ) from error
        self.written = (
            0  # rows written since the run began; the next one goes here, modulo the ring
        )
        self.first = self.last = 0  # transitions first .. last - 1 of the run are stored
        self.lengths: deque[int] = deque()  # of the stored episodes, oldest first

    def __len__(self) -> int:
        """Transitions stored."""
        return self.last - self.first

    @property
    def nbytes(self) -> int:
        """Return the memory of all tables in bytes."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, Tensor))

    @property
    def oldest(self) -> int:
        """The oldest row that is stored, counted since the run began."""
        return self.written - len(self) - len(self.lengths)

    def add(self, episodes: Episodes) -> None:
        """Store episodes, dropping as many of the oldest whole ones as needed."""
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
        """Store the rows of whole episodes, as `read` returns them."""
        has_action = rows["until_end"] > 0
        lengths = rows["until_end"][rows["since_start"] == 0].tolist()
        count, transitions = len(has_action), int(has_action.sum())
        while self.written + count - self.oldest > self.rows:
            self.first += self.lengths.popleft()
        place = (self.written + torch.arange(count)) % self.rows
        for name, values in rows.items():
            table = getattr(self, name)
            table[place.to(table.device)] = values.to(table.device, table.dtype)
        if self.reward is not None:
            ends, starts = (rows[name] == 0 for name in ("until_end", "since_start"))
            moved = self.reward(rows["achieved"][starts], rows["achieved"][ends]) < 0  # (episodes,)
            spread = moved.repeat_interleave(torch.as_tensor(lengths) + 1)
            self.moved[place.to(self.moved.device)] = spread.to(self.moved.device)
        order = (self.last + torch.arange(transitions)) % self.rows
        self.transitions[order.to(self.transitions.device)] = place[has_action].to(
            self.transitions.device, self.transitions.dtype
        )
        self.written += count
        self.last += transitions
        self.lengths.extend(lengths)

    def read(self, start: int) -> dict[str, Tensor]:
        """The rows stored from row `start` of the run on, on the host."""
        place = torch.arange(start, self.written) % self.rows
        tables = {name: getattr(self, name) for name in ROWS}
        return {name: table[place.to(table.device)].cpu() for name, table in tables.items()}

    def check(self, rows: dict[str, Tensor], count: int, where: str) -> None:
        """Refuse rows of unknown origin that are not so many, or not whole episodes of this task.

        Raises:
            UserError: Names the file.
        """
        layout = {name: (value.dtype, tuple(value.shape)) for name, value in rows.items()}
        tables = {name: getattr(self, name) for name in ROWS}
        if layout != {k: (v.dtype, (count, *v.shape[1:])) for k, v in tables.items()}:
            raise UserError(f"{where}: not {count} rows of this replay")
        start, end = rows["since_start"], rows["until_end"]
        ends = end == 0
        follows = (start[1:] == start[:-1] + 1) & (end[1:] == end[:-1] - 1)
        begins = (start[1:] == 0) & (end[1:] > 0)
        whole = torch.where(ends[:-1], begins, follows).all() and ends[-1] and start[0] == 0
        if not whole or end.max() > self.horizon or not torch.isfinite(rows["state"]).all():
            raise UserError(f"{where}: not whole episodes of this task")

    def start_at(self, row: int, transition: int) -> None:
        """Count rows and transitions from here; the buffer must be empty."""
        self.written, self.first, self.last = row, transition, transition

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
