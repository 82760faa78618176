"""Exact shortest paths in the unit square of the toy example (Sec. 3.2)."""

import torch
from torch import Tensor


def shortest_path_length(start: Tensor, goal: Tensor, eta: Tensor | float) -> Tensor:
    """Return the shortest path length d*(x0, xg) for points of shape (..., 2).

    Movement is free in the strip 0 <= x <= eta; elsewhere a path may not descend. Let
    x0 = (a, u) and xg = (b, v).

    If the goal is not lower, v >= u, the straight segment never descends. It is legal anywhere,
    and nothing is shorter: d* = |x0 - xg|.

    If the goal is lower, v < u, the path descends only in the strip. Let (eta, p) be where it
    first enters the strip (if a > eta) and (eta, q) where it last leaves it (if b > eta). It does
    not descend before the former or after the latter, so p >= u and q <= v.

    - Both outside: length >= |(a, u) - (eta, p)| + (p - q) + |(eta, q) - (b, v)|
      >= (a - eta) + (u - v) + (b - eta). Moving sideways, down along x = eta and sideways attains
      this bound.
    - Start inside: length >= |(a, u) - (eta, q)| + |(eta, q) - (b, v)|. For q <= v < u both
      terms fall as q rises, so q = v is optimal: straight to (eta, v), then sideways.
    - Goal inside: the same in reverse: sideways to (eta, u), then straight.
    - Both inside: the strip is convex, so straight.

    With a' = min(a, eta) and b' = min(b, eta), one formula covers all four cases:
    d* = (a - a') + |(a', u) - (b', v)| + (b - b').

    d* is discontinuous at equal heights if both points lie outside: it jumps from |a - b| for a
    goal at the start's height to a + b - 2 eta for one slightly below.

    Args:
        start: Start points x0.
        goal: Goal points xg.
        eta: Width of the strip; a tensor must broadcast with the batch of points.
    """
    a, u = start.unbind(-1)
    b, v = goal.unbind(-1)
    width = torch.as_tensor(eta, dtype=start.dtype)
    a_in, b_in = torch.minimum(a, width), torch.minimum(b, width)
    via_strip = (a - a_in) + torch.hypot(a_in - b_in, u - v) + (b - b_in)
    return torch.where(v < u, via_strip, torch.hypot(a - b, u - v))


def shortest_path(
    start: tuple[float, float], goal: tuple[float, float], eta: float
) -> list[tuple[float, float]]:
    """Return the corners of a shortest path, including both ends; some may coincide."""
    (a, u), (b, v) = start, goal
    if v >= u:
        return [start, goal]
    return [start, (min(a, eta), u), (min(b, eta), v), goal]


def slope_length(start: Tensor, goal: Tensor, eta: Tensor | float) -> Tensor:
    """Return a continuous quasimetric for comparison: |x0 - xg| + 2 (1 - eta) x descent.

    It is about as asymmetric as d* at eta = 0.1, and more asymmetric for wider strips.
    """
    descent = (start[..., 1] - goal[..., 1]).relu()
    straight = torch.linalg.vector_norm(start - goal, dim=-1)
    return straight + 2 * (1 - torch.as_tensor(eta)) * descent
