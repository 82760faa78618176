"""Batch of transitions that algorithms learn from."""

from typing import NamedTuple

from torch import Tensor


class Batch(NamedTuple):
    """Transitions (s, a, g, s', r), tensors of shape (B, ...)."""

    state: Tensor
    action: Tensor  # in [-1, 1]
    goal: Tensor
    next_state: Tensor
    reward: Tensor  # at the next state, in [-1, 0]
    terminated: Tensor  # True where the value of the next state is 0; False on truncation
    # Number of actions from the state to where its episode achieved the goal; inf if unknown.
    steps_to_goal: Tensor
    # The same transitions, all relabeled; only for algorithms with `uses_relabeled`.
    relabeled: "Batch | None" = None
