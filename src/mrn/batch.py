"""Batch of transitions that algorithms learn from."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from torch import Tensor

from mrn.utils.validation import Bounds, Fraction, Validated


@dataclass(frozen=True)
class TrajectorySampling(Validated):
    """How to sample `Trajectory`."""

    discount: Fraction
    """gamma: a future goal lies k steps ahead with probability proportional to gamma^k."""
    next_state_prob: Fraction = 1.0
    """Probability that the waypoint is the next state."""
    waypoint_decay: Annotated[float, Bounds(ge=0, lt=1)] = 0.0
    """beta: otherwise the waypoint lies k steps ahead with probability (1 - beta) beta^(k-1), but
    not beyond the first step that achieves the future goal."""


class Trajectory(NamedTuple):
    """What followed each transition in its own episode, tensors of shape (B, ...)."""

    achieved: Tensor  # goal achieved at the next state
    future_goal: Tensor  # goal achieved `future_steps` actions after the state
    future_steps: Tensor  # at least 1
    waypoint: Tensor  # state `waypoint_steps` actions after the state
    waypoint_steps: Tensor  # between 1 and the first step that achieves the future goal


class Batch(NamedTuple):
    """Transitions (s, a, g, s', r), tensors of shape (B, ...)."""

    state: Tensor
    action: Tensor  # in [-1, 1]
    goal: Tensor
    next_state: Tensor
    reward: Tensor  # at the next state, in [-1, 0]
    terminated: Tensor  # True where the value of the next state is 0; False on truncation
    # Number of actions from the state to where its episode, or a learned model's continuation of
    # it, achieved the goal; inf if unknown.
    steps_to_goal: Tensor
    # The same transitions, all relabeled; only for algorithms with `uses_relabeled`.
    relabeled: "Batch | None" = None
    # What followed the transitions; only for algorithms with `trajectory_sampling`.
    trajectory: Trajectory | None = None
    # Change of the achieved goal by the action; only for algorithms with `imagines_goals`.
    achieved_change: Tensor | None = None
