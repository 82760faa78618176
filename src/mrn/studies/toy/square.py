"""The toy example's unit square, and the exact length of its shortest paths (Sec. 3.2)."""

import torch
from torch import Tensor


def shortest_path_length(start: Tensor, goal: Tensor, eta: Tensor | float) -> Tensor:
    """d*(x0, xg): how far it is from x0 to xg, for points of shape (..., 2).

    In the strip 0 <= x <= eta one moves freely; elsewhere one may not lose height. Write
    x0 = (a, u), xg = (b, v).

    The goal is not lower, v >= u: the straight segment never loses height, so it is legal
    anywhere, and nothing is shorter: d* = |x0 - xg|.

    The goal is lower, v < u: height is lost in the strip only. Let (eta, p) be where the path
    first enters the strip (if a > eta) and (eta, q) where it last leaves it (if b > eta). Before
    the first and after the last no height is lost, so p >= u and q <= v.

    - Both outside: length >= |(a, u) - (eta, p)| + (p - q) + |(eta, q) - (b, v)|
      >= (a - eta) + (u - v) + (b - eta), which sideways, down along x = eta, sideways attains.
    - Start inside: length >= |(a, u) - (eta, q)| + |(eta, q) - (b, v)|. For q <= v < u both
      terms fall as q rises, so q = v is best: straight down to (eta, v), then sideways.
    - Goal inside: the same, reversed: sideways to (eta, u), then straight.
    - Both inside: the strip is convex, so straight.

    With a' = min(a, eta), b' = min(b, eta) all four are one formula:
    d* = (a - a') + |(a', u) - (b', v)| + (b - b').

    d* jumps where the heights are equal and both points lie outside: from |a - b| for a goal as
    high as the start to a + b - 2 eta for one that is lower by next to nothing.

    Args:
        start: x0.
        goal: xg.
        eta: Width of the strip, a number or a tensor that broadcasts with the points' batch.
    """
    a, u = start.unbind(-1)
    b, v = goal.unbind(-1)
    width = torch.as_tensor(eta, dtype=start.dtype)
    a_in, b_in = torch.minimum(a, width), torch.minimum(b, width)
    by_the_strip = (a - a_in) + torch.hypot(a_in - b_in, u - v) + (b - b_in)
    return torch.where(v < u, by_the_strip, torch.hypot(a - b, u - v))


def shortest_path(
    start: tuple[float, float], goal: tuple[float, float], eta: float
) -> list[tuple[float, float]]:
    """The corners of a shortest path, ends included (some may coincide)."""
    (a, u), (b, v) = start, goal
    if v >= u:
        return [start, goal]
    return [start, (min(a, eta), u), (min(b, eta), v), goal]


def slope_length(start: Tensor, goal: Tensor, eta: Tensor | float) -> Tensor:
    """A quasimetric without jumps, for comparison: |x0 - xg| + 2 (1 - eta) x the height lost.

    At eta = 0.1 there and back differ about as much as they do for d*, and for wider strips more.
    """
    lost = (start[..., 1] - goal[..., 1]).relu()
    straight = torch.linalg.vector_norm(start - goal, dim=-1)
    return straight + 2 * (1 - torch.as_tensor(eta)) * lost
