"""Checks of the paper's theory on exact optimal values of small MDPs (Sec. 3.1, docs/theory.md).

With d = -Q, the triangle inequality for values reads Q(x1, x2) + Q(x2, x3) <= Q(x1, x3).
"""

import numpy as np

from mrn.studies.theory.mdp import Array, MDPs

ROUNDING_TOLERANCE = 1e-8
"""Differences that count as rounding; values are exact to 1e-10 and at most 50 in magnitude."""

ALTERNATING = MDPs(np.array([[[0.0, 1.0], [1.0, 0.0]]]))
"""Two states that alternate forever under a single action."""


def count_violations(q: Array) -> int:
    """Count the triples (x1, x2, x3) of Q, (mdps, X, X), that violate the triangle inequality."""
    return sum(
        int((q[:, :, [x2]] + q[:, [x2], :] > q + ROUNDING_TOLERANCE).sum())
        for x2 in range(q.shape[-1])
    )


def largest_excess(q: Array) -> float:
    """Return the largest Q(x1, x2) + Q(x2, x3) - Q(x1, x3) over triples of distinct points."""
    points = np.arange(q.shape[-1])
    largest = -np.inf
    for x2 in points:
        rest = points[points != x2]
        excess = q[:, rest, x2, None] + q[:, None, x2, rest] - q[:, rest[:, None], rest]
        excess[:, np.arange(len(rest)), np.arange(len(rest))] = -np.inf  # x1 = x3
        largest = max(largest, float(excess.max()))
    return largest


def lift(q: Array, goals: Array, repaired: bool = True, exit_value: float = -np.inf) -> Array:
    """Lift Q* to X and a copy of each goal: return Q^, (mdps, X + goals, X + goals).

    As printed in the paper, with goals = Q* itself: Q^(a, b^) is Q*(a, a) for b = a and -infinity
    otherwise. Repaired: Q^(a, b^) = goals(a, b) for all a, b.

    Args:
        q: Q*(a, b) between pairs, (mdps, X, X).
        goals: Q*(a, b^), values of the goals, (mdps, X, goals).
        repaired: Use the repaired version instead of the printed one.
        exit_value: Value of every transition that leaves a copy.
    """
    size, copies = goals.shape[1:]
    lifted = np.full((len(q), size + copies, size + copies), exit_value)
    lifted[:, :size, :size] = q
    same = np.eye(size, copies, dtype=bool)
    lifted[:, :size, size:] = goals if repaired else np.where(same, goals, -np.inf)
    lifted[:, np.arange(size + copies), np.arange(size + copies)] = 0
    return lifted


def best_single_pair(q: Array, goal_of: Array, goals: int) -> Array:
    """Return the supremum of Q*(x, x') over x' with M(x') = g, (mdps, pairs, goals)."""
    belongs = goal_of[:, None, :, None] == np.arange(goals)  # (mdps, 1, x', g)
    return np.where(belongs, q[..., None], -np.inf).max(axis=2)


def visited_goal_pairs(mdps: MDPs, q: Array, goal_of: Array) -> tuple[Array, Array]:
    """Follow an optimal policy of deterministic MDPs from every x to every goal g.

    Returns:
        The number of distinct pairs x' with M(x') = g on the trajectory, (mdps, pairs, goals), and
        whether the trajectory is the only optimal one, because no choice on it was a tie.
    """
    count, pairs, goals = q.shape
    next_state = mdps.transitions.argmax(axis=-1)  # (mdps, pairs)
    choices = q.reshape(count, mdps.states, -1, goals)  # (mdps, states, actions, goals)
    best = choices.max(axis=2, keepdims=True)
    no_tie = (choices > best - ROUNDING_TOLERANCE).sum(axis=2) == 1  # (mdps, states, goals)
    m, g = np.arange(count)[:, None, None], np.arange(goals)
    pair = np.broadcast_to(np.arange(pairs)[:, None], q.shape)
    visited, unique = np.zeros((*q.shape, pairs), dtype=bool), np.ones(q.shape, dtype=bool)
    for _ in range(pairs + 1):  # by then the trajectory has entered a cycle
        visited |= (np.arange(pairs) == pair[..., None]) & (goal_of[m, pair] == g)[..., None]
        state = next_state[m, pair]
        unique &= no_tie[m, state, g]
        pair = state * choices.shape[2] + choices.argmax(axis=2)[m, state, g]
    return visited.sum(axis=-1), unique
