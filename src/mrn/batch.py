"""The transitions that replay hands to an agent."""

from typing import NamedTuple

from torch import Tensor


class Batch(NamedTuple):
    """Transitions (s, a, g, s', r), tensors of shape (B, ...)."""

    state: Tensor
    action: Tensor  # in [-1, 1]
    goal: Tensor
    next_state: Tensor
    reward: Tensor  # at the next state, in [-1, 0]
    terminated: Tensor  # whether there is nothing to come after the next state
    steps_to_goal: (
        Tensor  # actions from the state to where its episode achieved the goal; inf: unknown
    )
