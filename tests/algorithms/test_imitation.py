"""GCSL and WGCSL: who is imitated, and with which weight."""

import copy

import pytest
import torch
from torch.nn import functional as F

from mrn.algorithms import GCSL, WGCSL
from mrn.algorithms.losses import imitation_loss
from mrn.critics import CRITICS
from tests.algorithms.helpers import (
    DIMS,
    assert_gradients,
    double,
    generator,
    make_algorithm,
    moves,
    random_batch,
)

INF = float("inf")


def test_imitation_by_hand():
    policy, action = torch.tensor([[0.0, 0.0], [1.0, 1.0]]), torch.tensor([[1.0, 0.0], [0.0, -1.0]])
    # Errors 1/2 and 5/2.
    assert imitation_loss(policy, action, torch.tensor([1.0, 1.0])).item() == pytest.approx(1.5)
    assert imitation_loss(policy, action, torch.tensor([1.0, 0.2])).item() == pytest.approx(0.5)


def test_gcsl_imitates_what_led_to_its_goal_and_nothing_else():
    agent = make_algorithm(GCSL, learning_rate=0.0).double()
    batch = double(random_batch())
    assert 0 < torch.isinf(batch.steps).sum() < 64
    plain = copy.deepcopy(agent)
    loss = agent.update(batch, 1, generator())
    known = torch.isfinite(batch.steps)
    error = F.mse_loss(plain.actor(batch.state[known], batch.goal[known]), batch.action[known])
    expected = error * known.sum() / 64
    assert loss.tolist() == pytest.approx([expected.item()], rel=1e-6)
    assert_gradients(agent.actor, plain.actor, expected)
    nothing = agent.update(batch._replace(steps=torch.full((64,), INF)), 2, generator())
    assert nothing.tolist() == [0.0]


def test_gcsl_has_no_critic_and_never_asks_for_one():
    agent = GCSL(DIMS, None, GCSL.Settings(hidden_dim=32))
    assert agent.critic is None
    assert agent.discount == 1
    assert not GCSL.uses_critic


def test_gcsl_learns_a_policy_from_others_actions():
    """Actions are a function of state and goal: imitation finds it."""
    agent, batch = make_algorithm(GCSL), random_batch(size=256)
    batch = batch._replace(action=torch.tanh(batch.state[:, :3] - batch.goal[:, :1]))
    losses = [agent.update(batch, n, generator()).item() for n in range(1, 200)]
    assert losses[-1] < 0.1 * losses[0]


def weigher(**settings) -> WGCSL:
    plain = {"discount_weight": False, "advantage_clip": 0.0, "best_quantile": 0.0}
    return make_algorithm(WGCSL, discount=0.5, batch_size=4, **plain | settings)


ADVANTAGE, STEPS = torch.tensor([0.0, 1.0, -2.0, 5.0]), torch.tensor([1.0, 3.0, INF, 2.0])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [1, 1, 0, 1]),
        ({"discount_weight": True}, [0.5, 0.125, 0, 0.25]),
        ({"advantage_clip": 10.0}, [1, 2.718282, 0, 10]),
        # The median of 0, 1 and 5, the advantages of those that are imitated, is 1.
        ({"best_quantile": 0.5, "best_growth": 1.0}, [0.05, 1, 0, 1]),
        (
            {"discount_weight": True, "advantage_clip": 10.0, "best_quantile": 0.5,
             "best_growth": 1.0},
            [0.05 * 0.5, 0.125 * 2.718282, 0, 0.25 * 10],
        ),
    ],
)  # fmt: skip
def test_each_weight_by_hand(settings, expected):
    weight = weigher(**settings).weigh(ADVANTAGE, STEPS, 1)
    assert weight.tolist() == pytest.approx(expected, rel=1e-6)


def test_who_is_among_the_best_becomes_stricter_and_looks_at_recent_ones():
    agent = weigher(best_quantile=0.8, best_growth=0.1)
    advantage, near = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.ones(4)
    shares = []
    for number in range(1, 11):
        weight = agent.weigh(advantage, near, number)
        shares.append((weight == 1).sum().item())
        assert ((weight == 1) | (weight == 0.05)).all()
    # The quantile 0.1 n, at most 0.8, of n times the numbers 1 .. 4.
    assert shares == [3, 3, 3, 3, 2, 2, 2, 1, 1, 1]
    assert len(agent.advantages) * 4 == 50_000
    # Advantages that were pushed out of the ring do not count any more.
    agent.weigh(advantage + 100, near, 11)
    assert (agent.advantages[11] == advantage + 100).all()
    agent.weigh(advantage + 7, near, 11 + len(agent.advantages))
    assert (agent.advantages[11] == advantage + 7).all()


@pytest.mark.parametrize("critic", CRITICS)
def test_gradients_equal_the_textbook_computation(critic):
    agent = make_algorithm(WGCSL, critic, batch_size=64, best_growth=0.1).double()
    batch = double(random_batch())
    plain = copy.deepcopy(agent)
    losses = agent.compute_gradients(batch, 3)

    s, a, g, s2, r, end, k = batch
    next_q = plain.critic_target(s2, plain.actor_target(s2, g), g).detach()
    critic_loss = F.mse_loss(plain.critic(s, a, g), (r + 0.98 * next_q * ~end).clamp(-50, 0))
    value = plain.critic(s, plain.actor(s, g), g)
    next_value = plain.critic(s2, plain.actor(s2, g), g) * ~end
    advantage = (r + 0.98 * next_value - value).detach()
    known = torch.isfinite(k)
    threshold = torch.quantile(advantage[known], 0.3)
    weight = 0.98**k * advantage.exp().clamp(max=10)
    weight = weight * torch.where(advantage >= threshold, 1.0, 0.05)
    error = (plain.actor(s, g) - a).pow(2).mean(dim=-1)
    policy_loss = (weight * error).mean()

    assert (weight[~known] == 0).all()
    expected = [critic_loss, policy_loss, plain.critic(s, a, g).mean(), weight.mean()]
    assert losses.tolist() == pytest.approx([x.item() for x in expected], rel=1e-6)
    assert_gradients(agent.critic, plain.critic, critic_loss)
    assert_gradients(agent.actor, plain.actor, policy_loss)


def test_its_targets_move_as_those_of_ddpg():
    agent = make_algorithm(WGCSL, batch_size=64)
    target = next(agent.critic_target.parameters())
    assert moves(target, [lambda: agent.update(random_batch(), 1, generator())]) == [False]
    assert moves(target, [agent.end_cycle]) == [True]
