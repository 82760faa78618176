"""Hindsight experience replay: relabel transitions with goals that episodes achieved.

Andrychowicz et al. 2017 (https://arxiv.org/abs/1707.01495).
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from mrn.batch import Batch, TrajectorySampling
from mrn.envs.rewards import Reward
from mrn.replay.buffer import ReplayBuffer, StoredTransitions
from mrn.replay.goals import GoalMixture, Imagine
from mrn.replay.trajectory import TrajectorySampler


class Hindsight:
    """Sampler that replaces a fraction of the goals in a batch.

    A mixture of strategies selects the new goals; see `GoalMixture`.

    Rewards are recomputed for every transition at the next state, as the environments do.
    `steps_to_goal` is finite only for transitions relabeled with a goal that their episode achieved
    later, or that a model predicts.

    A transition with its original goal keeps its `terminated` flag. A relabeled one is terminal if
    it reaches its new goal and the environment ends episodes at the goal (see `GoalTermination`).
    Otherwise it is not terminal, because only the original goal can have ended the episode.

    While the policy cannot move an object yet, most episodes contain nothing about moving it. With
    `redraws`, a transition is drawn again until something moved in its episode, at most that many
    times. This selects by the future of a transition. In a deterministic environment it changes
    how often a transition is seen, but not its outcome.
    """

    def __init__(
        self,
        buffer: ReplayBuffer,
        goal_weights: Mapping[str, float],
        reward: Reward,
        redraws: int = 0,
        with_relabeled: bool = False,
        discount: float = 1.0,
        trajectory: TrajectorySampling | None = None,
        imagine: Imagine | None = None,
    ) -> None:
        """Sample from a buffer.

        Args:
            buffer: Buffer to sample from; it may still be empty.
            goal_weights: Probability of each strategy that selects new goals, in total at most 1.
            reward: Reward function of the task.
            redraws: Largest number of redraws per transition.
            with_relabeled: Whether `sample` also returns all its transitions relabeled.
            discount: Discount factor of the strategy `geometric`.
            trajectory: How to sample `Batch.trajectory`; None to leave it out.
            imagine: Model of the strategy `imagined`; `sample` then adds `Batch.achieved_change`.
        """
        self.buffer, self.reward, self.redraws = buffer, reward, redraws
        self.goals = GoalMixture(buffer, goal_weights, discount, imagine)
        self.with_relabeled = with_relabeled
        self.trajectory = (
            None if trajectory is None else TrajectorySampler(buffer, trajectory, reward)
        )
        self.moved = MovedEpisodes(buffer, reward) if redraws else None
        self.ends_at_goal = GoalTermination(buffer, reward)

    def sample(self, size: int, generator: torch.Generator) -> Batch:
        """Sample transitions with replacement, uniformly except for redraws."""
        # float64: float32 has too few values in [0, 1) to reach all of 1e6 transitions equally
        # often, and a product with the number of transitions may round up to that number.
        uniform = torch.rand(
            3 + self.redraws, size, generator=generator, device=generator.device,
            dtype=torch.float64,
        )  # fmt: skip
        rows = self.buffer.draw(uniform[0])
        if self.moved is not None:
            redrawn = [self.buffer.draw(numbers) for numbers in uniform[3:]]
            rows = self.moved.first(torch.stack([rows, *redrawn]))
        stored = self.buffer.gather(rows)
        batch = self._relabel(rows, stored, uniform[1:3], generator, self.with_relabeled)
        if self.trajectory is not None:
            trajectory = self.trajectory.sample(rows, stored, generator)
            batch = batch._replace(trajectory=trajectory)
        if self.goals.imagine is not None:
            achieved = self.buffer.achieved.index_select(0, rows)
            batch = batch._replace(achieved_change=stored.next_achieved - achieved)
        return batch

    def newest(self, count: int, generator: torch.Generator) -> Batch:
        """Return each of the last `count` transitions once, relabeled; nothing is imagined."""
        uniform = torch.rand(
            2, count, generator=generator, device=generator.device, dtype=torch.float64
        )
        if self.moved is not None:
            self.moved.catch_up()  # here, so that no update waits for the host
        rows = self.buffer.newest(count)
        return self._relabel(rows, self.buffer.gather(rows), uniform, None)

    def _relabel(
        self,
        rows: Tensor,
        stored: StoredTransitions,
        uniform: Tensor,
        generator: torch.Generator | None,
        with_relabeled: bool = False,
    ) -> Batch:
        """Build a batch from rows (B,) and random numbers (2, B) in [0, 1)."""
        goal, steps = self.goals.select(rows, stored, uniform[0], uniform[1], generator)
        chosen = uniform[1] < self.goals.total
        batch = self._with_goals(stored, goal, steps, chosen)
        if with_relabeled:
            everything = torch.ones_like(chosen)
            batch = batch._replace(relabeled=self._with_goals(stored, goal, steps, everything))
        return batch

    def _with_goals(
        self, stored: StoredTransitions, new_goal: Tensor, steps: Tensor, relabeled: Tensor
    ) -> Batch:
        """Replace the goals of the transitions where `relabeled` by goals `steps` ahead."""
        goal = torch.where(relabeled.unsqueeze(-1), new_goal, stored.goal)
        reward = self.reward(stored.next_achieved, goal)
        terminal = (reward == 0) & self.ends_at_goal()  # of relabeled transitions
        return Batch(
            state=stored.state,
            action=stored.action,
            goal=goal,
            next_state=stored.next_state,
            reward=reward,
            terminated=torch.where(relabeled, terminal, stored.terminated),
            steps_to_goal=torch.where(relabeled & (steps > 0), steps.float(), torch.inf),
        )


class MovedEpisodes:
    """Lookup of the stored episodes in which something moved.

    Something moved if the goal achieved at the end does not count as achieved at the start. The
    table follows from the buffer's rows: it is never saved, and catches up before every lookup.
    """

    def __init__(self, buffer: ReplayBuffer, reward: Reward) -> None:
        """Allocate the table; `reward` decides whether two achieved goals count as the same."""
        self.buffer, self.reward = buffer, reward
        self.table = buffer.allocate(dtype=torch.bool)  # valid at the first row of an episode
        self.seen = 0  # rows of the run that the table covers

    def __call__(self, rows: Tensor) -> Tensor:
        """Return whether something moved in the episode of each row; bool, the shape of `rows`."""
        self.catch_up()
        return self.table.index_select(0, self.buffer.first_rows(rows.flatten())).view_as(rows)

    def first(self, candidates: Tensor) -> Tensor:
        """Return for each column of candidates (K, B) the first that moved, else the last."""
        moved = self(candidates)
        moved[-1] = True
        # argmax does not support bool. It returns the first of several maxima.
        return candidates.gather(0, moved.byte().argmax(dim=0, keepdim=True)).squeeze(0)

    def catch_up(self) -> None:
        """Cover the episodes stored since the last call."""
        if self.seen == self.buffer.written:
            return
        first, length = self.buffer.episodes_since(max(self.seen, self.buffer.oldest))
        start = self.buffer.achieved_after(first, torch.zeros_like(length))
        end = self.buffer.achieved_after(first, length)
        self.table[first % self.buffer.rows] = self.reward(start, end) < 0
        self.seen = self.buffer.written


class GoalTermination:
    """Whether the environment ends episodes at the goal, as far as the stored episodes show.

    It does if the stored episodes terminated with reward 0, i.e. at their own goals, and did not go
    on there. `EXCEPTIONS` allows for rounding at the edge of a goal. Last steps do not count as
    going on, because the step limit may come first. The answer follows from the buffer's rows: it
    is never saved, and catches up before every lookup.
    """

    EXCEPTIONS = 0.1
    """Episodes that may go on at their goals, per episode that terminates there."""

    def __init__(self, buffer: ReplayBuffer, reward: Reward) -> None:
        """Start before the first episode; `reward` decides whether a goal is reached."""
        self.buffer, self.reward = buffer, reward
        # By place in the ring of transitions: 1 if it ended an episode at its goal, -1 / EXCEPTIONS
        # if the episode went on there, else 0.
        self.votes = buffer.allocate(dtype=torch.int8)
        self.first = self.last = 0  # transitions first .. last - 1 of the run have votes
        self.seen = 0  # transitions that the answer covers
        self.answer = torch.zeros((), dtype=torch.bool, device=buffer.device)

    def __call__(self) -> Tensor:
        """Return whether episodes end at their goals; shape (), on the device."""
        if self.seen < self.buffer.last:
            if any(self.buffer.terminations):
                self._count()
                self.answer = self.votes.sum() > 0
            else:
                self.first = self.last = 0
                self.answer = torch.zeros_like(self.answer)
            self.seen = self.buffer.last
        return self.answer

    def _count(self) -> None:
        """Let the transitions stored since the last call vote; drop the votes of evicted ones."""
        buffer = self.buffer
        if buffer.first < self.last:
            self.votes[self._places(self.first, buffer.first)] = 0
        else:
            self.votes.zero_()
            self.last = buffer.first
        places = self._places(self.last, buffer.last)
        rows = buffer.transitions.index_select(0, places)
        achieved = buffer.achieved_after(rows, torch.ones_like(rows))
        at_goal = self.reward(achieved, buffer.goal.index_select(0, rows)) == 0
        goes_on = (buffer.until_end.index_select(0, rows) > 1).char() * round(1 / self.EXCEPTIONS)
        ended = buffer.terminated.index_select(0, rows).char()
        self.votes[places] = at_goal * (ended - goes_on)
        self.first, self.last = buffer.first, buffer.last

    def _places(self, first: int, last: int) -> Tensor:
        """Return the places of transitions in their ring."""
        return torch.arange(first, last, device=self.buffer.device) % self.buffer.rows
