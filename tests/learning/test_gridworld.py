"""Quasimetric algorithms against the exact distances of a grid world. Minutes: `make test-slow`."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch.nn import functional as F

from mrn.algorithms import ALGORITHMS, QRL
from tests.algorithms import gridworld

pytestmark = pytest.mark.slow

LONG = {"size": 128, "learning_rate": 1e-3}


@pytest.mark.parametrize(
    ("name", "critic", "expected"),
    [
        ("crl", "mrn", 0.95),
        ("crl", "iqe", 0.9),
        ("crl", "uvfa", 0.95),
        ("crl", "mrn-sym", 0.9),
        ("cmd", "mrn", 0.93),
        ("tmd", "mrn", 0.95),
        ("tmd", "iqe", 0.9),
        ("mqe", "mrn", 0.95),
        ("mqe", "iqe", 0.9),
    ],
)
def test_logits_converge_to_the_log_occupancy_ratio(name, critic, expected):
    settings = {"discount": gridworld.DISCOUNT, **LONG}
    agent = gridworld.train(ALGORITHMS[name], 1500, critic, **settings)
    assert gridworld.occupancy_correlation(agent.critic) > expected


@pytest.mark.parametrize("critic", ["mrn", "iqe"])
def test_qrl_converges_to_the_number_of_steps(critic):
    agent = gridworld.train(QRL, 3000, critic, **LONG)
    assert gridworld.step_correlation(agent.critic) > 0.95
    cells, steps = torch.eye(gridworld.N), gridworld.steps_between()
    with torch.no_grad():
        distance = agent.critic.pairs(agent.critic.psi(cells), cells).numpy()
        points = agent.critic.psi(cells)
        moves = agent.critic.head(points[:, None], points[gridworld.NEXT.T].transpose(0, 1))
    assert spearmanr(distance.ravel(), steps.ravel()).statistic > 0.95
    assert np.polyfit(steps.ravel(), distance.ravel(), 1)[0] == pytest.approx(1, abs=0.3)
    # The constraint holds within its slack, and the multiplier has stopped growing.
    violated = (moves - 1).relu().square().mean().item() + np.square(np.diagonal(distance)).mean()
    assert violated < 1.5 * agent.settings.slack**2
    assert torch.isfinite(agent.raw_multiplier)
    assert F.softplus(agent.raw_multiplier).item() < 100
