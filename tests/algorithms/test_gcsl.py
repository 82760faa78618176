"""GCSL: which transitions are imitated."""

import copy

import pytest
import torch
from torch.nn import functional as F

from mrn.algorithms import GCSL
from mrn.algorithms.losses import imitation_loss
from tests.algorithms.helpers import (
    DIMS,
    assert_gradients,
    double,
    generator,
    make_algorithm,
    random_batch,
)


def test_imitation_loss_by_hand():
    policy, action = torch.tensor([[0.0, 0.0], [1.0, 1.0]]), torch.tensor([[1.0, 0.0], [0.0, -1.0]])
    # Errors 1/2 and 5/2.
    assert imitation_loss(policy, action, torch.tensor([1.0, 1.0])).item() == pytest.approx(1.5)
    assert imitation_loss(policy, action, torch.tensor([1.0, 0.2])).item() == pytest.approx(0.5)


def test_only_transitions_with_known_steps_to_goal_are_imitated():
    agent = make_algorithm(GCSL, learning_rate=0.0).double()
    batch = double(random_batch())
    assert 0 < torch.isinf(batch.steps_to_goal).sum() < 64
    plain = copy.deepcopy(agent)
    loss = agent.update(batch, 1, generator())
    known = torch.isfinite(batch.steps_to_goal)
    error = F.mse_loss(plain.actor(batch.state[known], batch.goal[known]), batch.action[known])
    expected = error * known.sum() / 64
    assert loss.tolist() == pytest.approx([expected.item()], rel=1e-6)
    assert_gradients(agent.actor, plain.actor, expected)
    unknown = batch._replace(steps_to_goal=torch.full((64,), torch.inf))
    assert agent.update(unknown, 2, generator()).tolist() == [0.0]


def test_gcsl_builds_no_critic():
    agent = GCSL(DIMS, None, GCSL.Settings(hidden_dim=32))
    assert agent.critic is None
    assert agent.discount == 1
    assert not GCSL.uses_critic


def test_gcsl_learns_a_policy_from_actions():
    """Imitation recovers actions that are a function of state and goal."""
    agent, batch = make_algorithm(GCSL), random_batch(size=256)
    batch = batch._replace(action=torch.tanh(batch.state[:, :3] - batch.goal[:, :1]))
    losses = [agent.update(batch, n, generator()).item() for n in range(1, 200)]
    assert losses[-1] < 0.1 * losses[0]
