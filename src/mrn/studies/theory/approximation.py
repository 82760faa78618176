"""Proposition 1 and Theorem 2: the axioms on trained heads, and the landmark construction."""

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
"""Enough to fit the 20 pairs of the toy example."""
TRIPLES, PAIRS = 20_000, 2_000
LANDMARKS = (1, 4, 16, 64, 256, 1024, 4096)


def axioms_table() -> Table:
    """Proposition 1 on every kind of network of the toy example, trained, in float64."""
    rows = []
    for name, kind in MODELS.items():
        fit = train(name, TRAINING)
        at, lowest, excess = [], [], []
        for seed in TRAINING.seeds:
            model = fit.model(ETA, seed).double()
            x, y, z = _points(seed, "triples", 3 * TRIPLES).unflatten(0, (3, -1))
            with torch.no_grad():
                direct, first, second = model(x, z), model(x, y), model(y, z)
                at.append(model(x, x).abs().max())
            lowest.append(direct.min())
            excess.append(direct - first - second)
        above = torch.cat(excess)
        rows.append(
            (
                kind.title,
                f"{max(at):.2g}",
                f"{min(lowest):.2g}",
                f"{(above > 1e-9).double().mean():.2%}",
                f"{above.max():.2g}",
            )
        )
    heads = ("trained network", "largest abs d(x, x)", "smallest d(x, z)", "triples broken")
    return (*heads, "largest d(x, z) - d(x, y) - d(y, z)"), rows


def landmark_error(to_start: Tensor, to_goal: Tensor, exact: Tensor) -> tuple[float, float]:
    """Mean and largest error of max_i relu(v(x, xi_i) - v(y, xi_i)) beside v(x, y).

    Args:
        to_start: v(x, xi_i), (pairs, landmarks).
        to_goal: v(y, xi_i), (pairs, landmarks).
        exact: v(x, y), (pairs,).
    """
    error = (exact - asymmetric_part(to_start, to_goal)).abs()
    return float(error.mean()), float(error.max())


def landmarks_table() -> Table:
    """Theorem 2's construction with the first K of one sequence of random landmarks."""
    start, goal = _points(0, "pairs", 2 * PAIRS).unflatten(0, (2, -1))
    landmarks = _points(0, "landmarks", max(LANDMARKS))
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
    which = [f"{what}: {how}" for what in ("slope", "d*", "MDP") for how in ("mean", "largest")]
    return ("landmarks", *which), rows


def _lifted_errors() -> list[tuple[float, float]]:
    """The same for -Q^ of a random MDP: 32 pairs and their copies are 64 points in all."""
    generator = np.random.default_rng(derive_seed(0, "landmarks"))
    mdps = random_mdps(1, 8, 4, True, generator)
    gamma = 0.9
    q = optimal_values(mdps, pair_rewards(mdps.pairs), gamma)
    v = torch.from_numpy(-lift(q, q, far=-1 / (1 - gamma))[0])  # (64, 64)
    shuffled = v[:, torch.from_numpy(generator.permutation(len(v)))]
    x, y = torch.cartesian_prod(torch.arange(len(v)), torch.arange(len(v))).unbind(-1)
    return [
        landmark_error(shuffled[x, :k], shuffled[y, :k], v[x, y]) for k in LANDMARKS if k <= len(v)
    ]


def _points(seed: int, purpose: str, count: int) -> Tensor:
    generator = make_generator(seed, f"theory {purpose}", torch.device("cpu"))
    return torch.rand(count, 2, generator=generator, dtype=torch.float64)
