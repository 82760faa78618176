"""Hindsight experience replay: transitions, some with a goal that their episode achieved.

Andrychowicz et al. 2017 (https://arxiv.org/abs/1707.01495).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from mrn.batch import Batch
from mrn.envs.rewards import Reward
from mrn.replay.buffer import ReplayBuffer
from mrn.replay.memory import Relabel


@dataclass(frozen=True)
class Hindsight:
    """Samples transitions and replaces a share of their goals by achieved ones.

    `future`: achieved at one of the steps t+1 .. L of the episode, equally likely; `final`: at
    step L; `episode`: at one of the steps 1 .. L. The reward is computed anew for every row, at
    the next state, as the environments do.
    """

    relabel: Relabel
    probability: float
    reward: Reward

    def sample(self, buffer: ReplayBuffer, size: int, generator: torch.Generator) -> Batch:
        """Transitions drawn with replacement, each stored one as likely as the others."""
        # float64: float32 has too few numbers in [0, 1) to reach every one of 1e6 transitions
        # equally, and may round up to 1 when multiplied.
        uniform = torch.rand(
            3, size, generator=generator, device=generator.device, dtype=torch.float64
        )
        return self._batch(buffer, buffer.draw(uniform[0]), uniform[1:])

    def newest(self, buffer: ReplayBuffer, count: int, generator: torch.Generator) -> Batch:
        """Each of the last `count` transitions once."""
        uniform = torch.rand(
            2, count, generator=generator, device=generator.device, dtype=torch.float64
        )
        return self._batch(buffer, buffer.newest(count), uniform)

    def _batch(self, buffer: ReplayBuffer, row: Tensor, uniform: Tensor) -> Batch:
        next_row = (row + 1) % buffer.rows
        achieved_row = (row + self._offset(buffer, row, uniform[0])) % buffer.rows
        relabelled = (uniform[1] < self.probability).unsqueeze(-1)  # (B, 1)
        achieved, goal = (
            buffer.achieved.index_select(0, achieved_row),
            buffer.goal.index_select(0, row),
        )
        goal = torch.where(relabelled, achieved, goal)
        return Batch(
            state=buffer.state.index_select(0, row),
            action=buffer.action.index_select(0, row),
            goal=goal,
            next_state=buffer.state.index_select(0, next_row),
            reward=self.reward(buffer.achieved.index_select(0, next_row), goal),
            terminated=buffer.terminated.index_select(0, row),
        )

    def _offset(self, buffer: ReplayBuffer, row: Tensor, uniform: Tensor) -> Tensor:
        """Rows from a transition to the one whose achieved goal it may get."""
        until_end = buffer.until_end.index_select(0, row)
        if self.relabel == "final":
            return until_end
        if self.relabel == "future":
            return 1 + (uniform * until_end).int()
        since_start = buffer.since_start.index_select(0, row)
        return 1 + (uniform * (since_start + until_end)).int() - since_start
