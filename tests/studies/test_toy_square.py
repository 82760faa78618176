"""Tests of the toy example's distance: by hand, by brute force, and against the axioms."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from mrn.studies.toy.square import shortest_path, shortest_path_length, slope_length

ETAS = (0.1, 0.3, 0.5, 0.7, 0.9)


def length(start, goal, eta) -> float:
    points = torch.tensor([start, goal], dtype=torch.float64)
    return shortest_path_length(points[0], points[1], eta).item()


@pytest.mark.parametrize(
    ("start", "goal", "expected"),
    [
        ((0.8, 0.1), (0.5, 0.5), 0.5),  # up: straight, a 3-4-5 triangle
        ((0.8, 0.4), (0.5, 0.4), 0.3),  # level: straight
        ((0.0, 0.6), (0.3, 0.2), 0.5),  # down, both in the strip (which includes its edge)
        ((0.6, 0.9), (0.5, 0.4), 0.3 + 0.5 + 0.2),  # down, both outside
        ((0.0, 0.9), (0.8, 0.5), 0.5 + 0.5),  # from inside: slanted to (0.3, 0.5), sideways
        ((0.8, 0.9), (0.0, 0.5), 0.5 + 0.5),  # to inside: sideways, then slanted
    ],
)
def test_shortest_path_length_by_hand(start, goal, expected):
    assert length(start, goal, 0.3) == pytest.approx(expected, abs=1e-12)


def test_distance_jumps_if_the_goal_is_slightly_lower():
    assert length((0.8, 0.5), (0.7, 0.5), 0.2) == pytest.approx(0.1)
    assert length((0.8, 0.5), (0.7, 0.5 - 1e-9), 0.2) == pytest.approx(0.6 + 0.5)


coordinates = st.floats(0, 1)
points = st.tuples(coordinates, coordinates)


@given(start=points, goal=points, eta=st.sampled_from(ETAS))
@settings(max_examples=300, deadline=None)
def test_shortest_path_is_legal_and_has_the_exact_length(start, goal, eta):
    corners = np.array(shortest_path(start, goal, eta))
    steps = np.diff(corners, axis=0)
    assert np.hypot(*steps.T).sum() == pytest.approx(length(start, goal, eta), abs=1e-12)
    outside = np.maximum(corners[:-1, 0], corners[1:, 0]) > eta
    assert (steps[outside, 1] >= 0).all()


def grid_distances(cells: int, eta: float, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes of a grid and the shortest path lengths between them.

    Edges connect each node to all others within reach, in lowest terms. An edge that descends must
    stay in the strip, whose width is a whole number of cells.
    """
    nodes = np.stack(np.meshgrid(*[np.arange(cells + 1)] * 2, indexing="ij"), -1).reshape(-1, 2)
    number = {tuple(node): i for i, node in enumerate(nodes)}
    moves = [
        (dx, dy)
        for dx in range(-reach, reach + 1)
        for dy in range(-reach, reach + 1)
        if math.gcd(dx, dy) == 1
    ]
    edges = [
        (i, number[x + dx, y + dy], math.hypot(dx, dy) / cells)
        for i, (x, y) in enumerate(nodes)
        for dx, dy in moves
        if (x + dx, y + dy) in number and (dy >= 0 or max(x, x + dx) <= round(eta * cells))
    ]
    rows, columns, lengths = zip(*edges, strict=True)
    graph = csr_matrix((lengths, (rows, columns)), shape=(len(nodes),) * 2)
    return nodes / cells, dijkstra(graph)


@pytest.mark.parametrize("eta", ETAS)
def test_distance_matches_brute_force_shortest_paths(eta):
    nodes, brute = grid_distances(cells=20, eta=eta, reach=5)
    grid = torch.tensor(nodes)
    exact = shortest_path_length(grid[:, None], grid[None], eta).numpy()
    # A path on the grid is a valid path, so it is never shorter. Directions are at most 11.4
    # degrees apart (slopes 0 and 1/5), so it is longer by at most a factor 1 / cos(5.7 degrees).
    assert (brute >= exact - 1e-9).all()
    assert (brute <= exact / math.cos(math.atan(1 / 5) / 2) + 1e-9).all()


@pytest.mark.parametrize("target", [shortest_path_length, slope_length])
@pytest.mark.parametrize("eta", ETAS)
def test_quasimetric_axioms_on_random_triples(target, eta):
    generator = torch.Generator().manual_seed(1)
    x, y, z = torch.rand(3, 200_000, 2, generator=generator, dtype=torch.float64)
    y[:50_000, 1] = x[:50_000, 1]  # at equal heights, where d* jumps
    z[25_000:75_000, 1] = y[25_000:75_000, 1]
    direct, detour = target(x, z, eta), target(x, y, eta) + target(y, z, eta)
    assert (direct <= detour + 1e-12).all()
    assert (target(x, x, eta) == 0).all()
    assert (direct >= torch.linalg.vector_norm(x - z, dim=-1) - 1e-12).all()
    assert (target(x, z, eta) > target(z, x, eta) + 0.01).any()


def test_slope_length_is_about_as_asymmetric_as_the_strip():
    x, y = torch.rand(2, 100_000, 2, generator=torch.Generator().manual_seed(2))

    def asymmetry(target, eta: float) -> float:
        there, back = target(x, y, eta), target(y, x, eta)
        return ((there - back).abs().sum() / (there + back).sum()).item()

    assert asymmetry(shortest_path_length, 0.1) == pytest.approx(0.375, abs=0.005)
    assert asymmetry(slope_length, 0.1) == pytest.approx(0.365, abs=0.005)
    assert asymmetry(slope_length, 0.3) > asymmetry(shortest_path_length, 0.3) + 0.05
    assert asymmetry(shortest_path_length, 0.9) < 0.005
