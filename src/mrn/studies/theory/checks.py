"""The paper's theory, checked on exact optimal values of small MDPs (Sec. 3.1, docs/theory.md).

A value Q and a distance d = -Q are the same thing here; the triangle inequality for values reads
Q(x1, x2) + Q(x2, x3) <= Q(x1, x3).
"""

import numpy as np

from mrn.studies.theory.mdp import Array, MDPs

SLACK = 1e-8
"""Differences below are rounding: values are exact to 1e-10, and at most 50 in size."""

ALTERNATING = MDPs(np.array([[[0.0, 1.0], [1.0, 0.0]]]))
"""Two states, one action: each leads to the other, for ever."""


def broken_triples(q: Array) -> int:
    """How many triples (x1, x2, x3) of Q, (mdps, X, X), break the triangle inequality."""
    return sum(int((q[:, :, [x2]] + q[:, [x2], :] > q + SLACK).sum()) for x2 in range(q.shape[-1]))


def largest_excess(q: Array) -> float:
    """The largest Q(x1, x2) + Q(x2, x3) - Q(x1, x3) over triples of three different points."""
    points = np.arange(q.shape[-1])
    largest = -np.inf
    for x2 in points:
        rest = points[points != x2]
        excess = q[:, rest, x2, None] + q[:, None, x2, rest] - q[:, rest[:, None], rest]
        excess[:, np.arange(len(rest)), np.arange(len(rest))] = -np.inf  # x1 = x3
        largest = max(largest, float(excess.max()))
    return largest


def lift(q: Array, goals: Array, repaired: bool = True, far: float = -np.inf) -> Array:
    """The lifting to X and a copy of each goal: Q^, (mdps, X + goals, X + goals).

    As the paper prints it, with goals = Q* itself: Q^(a, b^) is Q*(a, a) for b = a and -infinity
    otherwise. Repaired: Q^(a, b^) = goals(a, b) for all a, b.

    Args:
        q: Q*(a, b) between pairs, (mdps, X, X).
        goals: Q*(a, b^), values of the goals, (mdps, X, goals).
        repaired: Or as printed.
        far: The value of leaving a copy.
    """
    size, copies = goals.shape[1:]
    lifted = np.full((len(q), size + copies, size + copies), far)
    lifted[:, :size, :size] = q
    same = np.eye(size, copies, dtype=bool)
    lifted[:, :size, size:] = goals if repaired else np.where(same, goals, -np.inf)
    lifted[:, np.arange(size + copies), np.arange(size + copies)] = 0
    return lifted


def best_single_pair(q: Array, goal_of: Array, goals: int) -> Array:
    """The supremum of Q*(x, x') over x' with M(x') = g, (mdps, pairs, goals)."""
    belongs = goal_of[:, None, :, None] == np.arange(goals)  # (mdps, 1, x', g)
    return np.where(belongs, q[..., None], -np.inf).max(axis=2)


def goal_pairs_met(mdps: MDPs, q: Array, goal_of: Array) -> tuple[Array, Array]:
    """Follow an optimal policy of a deterministic MDP from every x to every goal g.

    Returns:
        The number of different pairs x' with M(x') = g on the way, (mdps, pairs, goals), and
        whether the policy was never indifferent, so that this trajectory is the only optimal one.
    """
    count, pairs, goals = q.shape
    next_state = mdps.transitions.argmax(axis=-1)  # (mdps, pairs)
    choices = q.reshape(count, mdps.states, -1, goals)  # (mdps, states, actions, goals)
    best = choices.max(axis=2, keepdims=True)
    sure = (choices > best - SLACK).sum(axis=2) == 1  # (mdps, states, goals)
    m, g = np.arange(count)[:, None, None], np.arange(goals)
    at = np.broadcast_to(np.arange(pairs)[:, None], q.shape)
    met, only = np.zeros((*q.shape, pairs), dtype=bool), np.ones(q.shape, dtype=bool)
    for _ in range(pairs + 1):  # by then it goes in circles
        met |= (np.arange(pairs) == at[..., None]) & (goal_of[m, at] == g)[..., None]
        state = next_state[m, at]
        only &= sure[m, state, g]
        at = state * choices.shape[2] + choices.argmax(axis=2)[m, state, g]
    return met.sum(axis=-1), only
