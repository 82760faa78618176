"""Hindsight experience replay: transitions, some with a goal that their episode achieved.

Andrychowicz et al. 2017 (https://arxiv.org/abs/1707.01495).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from mrn.batch import Batch
from mrn.envs.rewards import Reward
from mrn.replay.buffer import ReplayBuffer
from mrn.replay.config import GoalSelectionStrategy


@dataclass(frozen=True)
class Hindsight:
    """Samples transitions and replaces a share of their goals by achieved ones.

    `future`: achieved at one of the steps t+1 .. L of the episode, equally likely; `final`: at
    step L; `episode`: at one of the steps 1 .. L. The reward is computed anew for every row, at
    the next state, as the environments do. How many steps ahead a goal was achieved is known where
    it was replaced by a later one; for all others, the environment's own among them, it is inf.

    While a policy cannot move an object, most episodes teach nothing about moving it. So a
    transition may be drawn again, some number of times, until it is of an episode in which
    something moved. That looks at what came after the transition; but where the same action has the
    same effect, it changes how often a transition is seen and not what follows from it.
    """

    strategy: GoalSelectionStrategy
    probability: float
    reward: Reward
    redraws: int = 0

    def sample(self, buffer: ReplayBuffer, size: int, generator: torch.Generator) -> Batch:
        """Transitions drawn with replacement, each as likely as the others but for redraws."""
        # float64: float32 has too few numbers in [0, 1) to reach every one of 1e6 transitions
        # equally, and may round up to 1 when multiplied.
        count = 3 + self.redraws
        uniform = torch.rand(
            count, size, generator=generator, device=generator.device, dtype=torch.float64
        )
        row = buffer.draw(uniform[0])
        if self.redraws:
            row = self._first_moved(buffer, torch.stack([row, *map(buffer.draw, uniform[3:])]))
        return self._batch(buffer, row, uniform[1:3])

    def newest(self, buffer: ReplayBuffer, count: int, generator: torch.Generator) -> Batch:
        """Each of the last `count` transitions once."""
        uniform = torch.rand(
            2, count, generator=generator, device=generator.device, dtype=torch.float64
        )
        return self._batch(buffer, buffer.newest(count), uniform)

    def _first_moved(self, buffer: ReplayBuffer, rows: Tensor) -> Tensor:
        """Of candidates (K, B) the first in whose episode something moved, else the last one."""
        moved = buffer.moved.index_select(0, rows.flatten()).view_as(rows)
        moved[-1] = True
        # argmax does not take truth values, and returns the first of several largest.
        return rows.gather(0, moved.byte().argmax(dim=0, keepdim=True)).squeeze(0)

    def _batch(self, buffer: ReplayBuffer, row: Tensor, uniform: Tensor) -> Batch:
        next_row = (row + 1) % buffer.rows
        offset = self._offset(buffer, row, uniform[0])
        achieved_row = (row + offset) % buffer.rows
        relabelled = uniform[1] < self.probability
        achieved, goal = (
            buffer.achieved.index_select(0, achieved_row),
            buffer.goal.index_select(0, row),
        )
        goal = torch.where(relabelled.unsqueeze(-1), achieved, goal)
        return Batch(
            state=buffer.state.index_select(0, row),
            action=buffer.action.index_select(0, row),
            goal=goal,
            next_state=buffer.state.index_select(0, next_row),
            reward=self.reward(buffer.achieved.index_select(0, next_row), goal),
            terminated=buffer.terminated.index_select(0, row),
            steps_to_goal=torch.where(relabelled & (offset > 0), offset.float(), torch.inf),
        )

    def _offset(self, buffer: ReplayBuffer, row: Tensor, uniform: Tensor) -> Tensor:
        """Rows from a transition to the one whose achieved goal it may get."""
        until_end = buffer.until_end.index_select(0, row)
        if self.strategy == "final":
            return until_end
        if self.strategy == "future":
            return 1 + (uniform * until_end).int()
        since_start = buffer.since_start.index_select(0, row)
        return 1 + (uniform * (since_start + until_end)).int() - since_start
