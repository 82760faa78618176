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

    It does if a stored episode terminated with reward 0, i.e. at its own goal. The answer follows
    from the buffer's rows: it is never saved, and catches up before every lookup.
    """

    def __init__(self, buffer: ReplayBuffer, reward: Reward) -> None:
        """Start before the first episode; `reward` decides whether a goal is reached."""
        self.buffer, self.reward = buffer, reward
        # Last row of the run whose action terminated an episode at its goal.
        self.newest = torch.full((), -1, device=buffer.device)
        self.seen = 0  # rows of the run that were searched

    def __call__(self) -> Tensor:
        """Return whether a stored episode terminated at its own goal; shape (), on the device."""
        buffer = self.buffer
        if self.seen < buffer.written:
            first, length = buffer.episodes_since(max(self.seen, buffer.oldest))
            last = first + length - 1
            stored = buffer.gather(last % buffer.rows)
            at_goal = stored.terminated & (self.reward(stored.next_achieved, stored.goal) == 0)
            self.newest = torch.maximum(self.newest, torch.where(at_goal, last, -1).max())
            self.seen = buffer.written
        return self.newest >= buffer.oldest
