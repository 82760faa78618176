"""Proposition 1 (axioms on trained networks) and Theorem 2 (landmark construction)."""

import numpy as np
import torch
from torch import Tensor

from mrn.critics.heads.mrn import asymmetric_part
from mrn.studies.theory.checks import lift
from mrn.studies.theory.mdp import optimal_values, pair_rewards, random_mdps
from mrn.studies.toy.models import MODELS
from mrn.studies.toy.square import shortest_path_length, slope_length
from mrn.studies.toy.study import Settings, train
from mrn.utils.seeding import derive_seed, make_generator
from mrn.utils.tables import Table

ETA = 0.3
TRAINING = Settings(etas=(ETA,), test_pairs=1000, iterations=300)
"""Training long enough to fit the 20 pairs of the toy example."""
NUM_TRIPLES, NUM_PAIRS = 20_000, 2_000
LANDMARKS = (1, 4, 16, 64, 256, 1024, 4096)


def axioms_table() -> Table:
    """Test Proposition 1 on every trained network of the toy example, in float64."""
    rows = []
    for name, model_type in MODELS.items():
        fit = train(name, TRAINING)
        self_distance, smallest, excess = [], [], []
        for seed in TRAINING.seeds:
            model = fit.model(ETA, seed).double()
            x, y, z = _sample_points(seed, "triples", 3 * NUM_TRIPLES).unflatten(0, (3, -1))
            with torch.no_grad():
                direct, first, second = model(x, z), model(x, y), model(y, z)
                self_distance.append(model(x, x).abs().max())
            smallest.append(direct.min())
            excess.append(direct - first - second)
        all_excess = torch.cat(excess)
        rows.append(
            (
                model_type.title,
                f"{max(self_distance):.2g}",
                f"{min(smallest):.2g}",
                f"{(all_excess > 1e-9).double().mean():.2%}",
                f"{all_excess.max():.2g}",
            )
        )
    columns = ("trained network", "max abs d(x, x)", "min d(x, z)", "violations")
    return (*columns, "max d(x, z) - d(x, y) - d(y, z)"), rows


def landmark_error(to_start: Tensor, to_goal: Tensor, exact: Tensor) -> tuple[float, float]:
    """Return the mean and maximum error of max_i relu(v(x, xi_i) - v(y, xi_i)) against v(x, y).

    Args:
        to_start: v(x, xi_i), (pairs, landmarks).
        to_goal: v(y, xi_i), (pairs, landmarks).
        exact: v(x, y), (pairs,).
    """
    error = (exact - asymmetric_part(to_start, to_goal)).abs()
    return float(error.mean()), float(error.max())


def landmarks_table() -> Table:
    """Measure Theorem 2's construction with the first K landmarks of one random sequence."""
    start, goal = _sample_points(0, "pairs", 2 * NUM_PAIRS).unflatten(0, (2, -1))
    landmarks = _sample_points(0, "landmarks", max(LANDMARKS))
    columns = []
    for target in (slope_length, shortest_path_length):
        to_start, to_goal = (target(p[:, None], landmarks, ETA) for p in (start, goal))
        exact = target(start, goal, ETA)
        columns.append([landmark_error(to_start[:, :k], to_goal[:, :k], exact) for k in LANDMARKS])
    columns.append(_lifted_errors())
    rows = []
    for i, k in enumerate(LANDMARKS):
        errors = [column[i] if i < len(column) else ("", "") for column in columns]
        cells = [f"{e:.4f}" if e != "" else e for pair in errors for e in pair]
        rows.append((f"{k:,}", *cells))
    headings = [
        f"{target}: {kind}" for target in ("slope", "d*", "MDP") for kind in ("mean", "max")
    ]
    return ("landmarks", *headings), rows


def _lifted_errors() -> list[tuple[float, float]]:
    """Return the errors for -Q^ of a random MDP, whose 32 pairs and their copies are 64 points."""
    generator = np.random.default_rng(derive_seed(0, "landmarks"))
    mdps = random_mdps(1, 8, 4, True, generator)
    gamma = 0.9
    q = optimal_values(mdps, pair_rewards(mdps.pairs), gamma)
    v = torch.from_numpy(-lift(q, q, exit_value=-1 / (1 - gamma))[0])  # (64, 64)
    shuffled = v[:, torch.from_numpy(generator.permutation(len(v)))]
    x, y = torch.cartesian_prod(torch.arange(len(v)), torch.arange(len(v))).unbind(-1)
    return [
        landmark_error(shuffled[x, :k], shuffled[y, :k], v[x, y]) for k in LANDMARKS if k <= len(v)
    ]


def _sample_points(seed: int, purpose: str, count: int) -> Tensor:
    generator = make_generator(seed, f"theory {purpose}", torch.device("cpu"))
    return torch.rand(count, 2, generator=generator, dtype=torch.float64)
