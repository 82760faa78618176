"""Goals for relabeled transitions, drawn from a mixture of strategies."""

import math
from collections.abc import Callable, Mapping
from itertools import accumulate

import torch
from torch import Tensor

from mrn.replay.buffer import ReplayBuffer, StoredTransitions
from mrn.replay.goal_mix import IMAGINED

Imagine = Callable[[Tensor, Tensor, Tensor, torch.Generator], tuple[Tensor, Tensor]]
"""Predicts by how much the achieved goals change, (B, goal), and in how many steps, (B,).

Takes states, the goals that a policy pursues from there, random numbers in [0, 1) that determine
the number of steps, and a generator. States and goals are not normalized.
"""


class GoalMixture:
    """Selection of a new goal for every transition, by one strategy of a mixture.

    A strategy selects the goal of a transition at step t of an episode of length L:

    - `future`: achieved at a step drawn uniformly from t+1 .. L.
    - `final`: achieved at step L.
    - `episode`: achieved at a step drawn uniformly from 1 .. L.
    - `geometric`: achieved at step t+k, k in 1 .. L-t, with probability proportional to gamma^k.
    - `random`: achieved at a uniformly drawn step of the other stored episodes.
    - `desired`: desired at a uniformly drawn step of the other stored episodes.
    - `imagined`: predicted to be achieved by the policy after the next state.

    While the buffer holds a single episode, `random` and `desired` return the goals of its start.
    """

    def __init__(
        self,
        buffer: ReplayBuffer,
        weights: Mapping[str, float],
        discount: float,
        imagine: Imagine | None = None,
    ) -> None:
        """Select goals from a buffer.

        Args:
            buffer: Buffer to select from; it may still be empty.
            weights: Probability of each strategy, in total at most 1.
            discount: Discount factor gamma of `geometric`.
            imagine: Model of `imagined`.
        """
        self.buffer, self.discount, self.imagine = buffer, discount, imagine
        drawn = {name: weight for name, weight in weights.items() if weight} or weights
        self.names = tuple(drawn)
        self.bounds = list(accumulate(drawn.values()))
        self.total = self.bounds[-1]

    def select(
        self,
        rows: Tensor,
        stored: StoredTransitions,
        uniform: Tensor,
        choice: Tensor,
        generator: torch.Generator | None,
    ) -> tuple[Tensor, Tensor]:
        """Return a new goal for every transition, whether or not it is to be relabeled.

        Args:
            rows: Rows of the transitions, (B,).
            stored: The transitions.
            uniform: Random numbers in [0, 1), (B,), for the strategies.
            choice: Random numbers in [0, 1), (B,), that choose the strategy of each transition. It
                is to be relabeled if its number is below `total`.
            generator: Source of randomness for the model of `imagined`. Without it, the goals
                achieved at the next states replace imagined ones.

        Returns:
            The goals, (B, goal), and the number of steps to them, (B,); not positive if unknown.
        """
        *others, (goal, steps) = [
            self._imagined(stored, uniform, generator)
            if name == IMAGINED
            else self._select(name, rows, stored, uniform)
            for name in self.names
        ]
        if others and self.total < 1:  # numbers beyond `total` choose with the same odds
            rest = (choice - self.total) * (self.total / (1 - self.total))
            choice = torch.where(choice < self.total, choice, rest)
        for bound, (other_goal, other_steps) in zip(self.bounds[-2::-1], others[::-1], strict=True):
            earlier = choice < bound
            goal = torch.where(earlier.unsqueeze(-1), other_goal, goal)
            steps = torch.where(earlier, other_steps, steps)
        return goal, steps

    def _imagined(
        self, stored: StoredTransitions, uniform: Tensor, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        """Return the goals that a model predicts, and the steps to them."""
        if generator is None:
            return stored.next_achieved, torch.ones_like(stored.until_end)
        assert self.imagine is not None  # the configuration is checked
        change, steps = self.imagine(stored.next_state, stored.goal, uniform, generator)
        return stored.next_achieved + change, 1 + steps

    def _select(
        self, name: str, rows: Tensor, stored: StoredTransitions, uniform: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the goals of one strategy and the steps to them."""
        since_start, until_end = stored.since_start, stored.until_end
        if name in ("random", "desired"):
            source = self.buffer.achieved if name == "random" else self.buffer.goal
            other = self.buffer.other_rows(rows, since_start, until_end, uniform)
            return source.index_select(0, other), torch.zeros_like(until_end)
        if name == "final":
            steps = until_end
        elif name == "geometric":
            steps = geometric_steps(uniform, until_end, self.discount)
        elif name == "future":
            steps = 1 + (uniform * until_end).int()
        else:
            steps = 1 + (uniform * (since_start + until_end)).int() - since_start
        return self.buffer.achieved_after(rows, steps), steps


def geometric_steps(uniform: Tensor, limit: Tensor, discount: float) -> Tensor:
    """Return k in 1 .. limit with probability proportional to discount^k, int32.

    Inverts the distribution function (1 - gamma^k) / (1 - gamma^limit).

    Args:
        uniform: Random numbers in [0, 1), (B,), float64.
        limit: Largest values, (B,), at least 1.
        discount: gamma in [0, 1]; 1 gives the uniform distribution.
    """
    if discount == 1:
        return 1 + (uniform * limit).int()
    log = math.log(discount) if discount > 0 else -math.inf
    below = torch.log1p(uniform * torch.expm1(limit * log)) / log
    return torch.minimum(1 + below.int(), limit)
