"""WGCSL: weights of imitated transitions, losses, target updates."""

import copy

import pytest
import torch
from torch.nn import functional as F

from mrn.algorithms import WGCSL
from mrn.algorithms.wgcsl import value_at_rank
from mrn.critics import CRITICS
from tests.algorithms.helpers import (
    assert_gradients,
    changes,
    double,
    generator,
    make_algorithm,
    random_batch,
)
from tests.training.helpers import tiny_run


def make_wgcsl(**settings) -> WGCSL:
    """Build WGCSL with only the given weights enabled."""
    plain = {"discount_weight": False, "advantage_clip": 0.0, "best_quantile": 0.0}
    return make_algorithm(WGCSL, discount=0.5, batch_size=4, **plain | settings)


ADVANTAGE, STEPS = torch.tensor([0.0, 1.0, -2.0, 5.0]), torch.tensor([1.0, 3.0, torch.inf, 2.0])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [1, 1, 0, 1]),
        ({"discount_weight": True}, [0.5, 0.125, 0, 0.25]),
        ({"advantage_clip": 10.0}, [1, 2.718282, 0, 10]),
        # The median of the imitated transitions' advantages 0, 1 and 5 is 1.
        ({"best_quantile": 0.5, "best_growth": 1.0}, [0.05, 1, 0, 1]),
        (
            {"discount_weight": True, "advantage_clip": 10.0, "best_quantile": 0.5,
             "best_growth": 1.0},
            [0.05 * 0.5, 0.125 * 2.718282, 0, 0.25 * 10],
        ),
    ],
)  # fmt: skip
def test_weights_by_hand(settings, expected):
    weight = make_wgcsl(**settings).weigh(ADVANTAGE, STEPS, 1)
    assert weight.tolist() == pytest.approx(expected, rel=1e-6)


def test_quantile_of_recent_advantages_rises():
    agent = make_wgcsl(best_quantile=0.8, best_growth=0.1)
    advantage, near = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.ones(4)
    counts = []
    for number in range(1, 11):
        weight = agent.weigh(advantage, near, number)
        counts.append((weight == 1).sum().item())
        assert ((weight == 1) | (weight == 0.05)).all()
    # The quantile min(0.1 n, 0.8) of n copies of 1 .. 4.
    assert counts == [3, 3, 3, 3, 2, 2, 2, 1, 1, 1]
    assert len(agent.advantages) * 4 == 50_000
    # New advantages overwrite the oldest ones in the ring.
    agent.weigh(advantage + 100, near, 11)
    assert (agent.advantages[11] == advantage + 100).all()
    agent.weigh(advantage + 7, near, 11 + len(agent.advantages))
    assert (agent.advantages[11] == advantage + 7).all()


@pytest.mark.parametrize("filled", [0, 1, 5, 33, 64])
@pytest.mark.parametrize("quantile", [0.0, 0.1, 0.37, 0.5, 0.8])
def test_threshold_separates_advantages_as_the_interpolated_quantile_does(filled, quantile):
    agent = make_algorithm(WGCSL, batch_size=64)
    advantage = torch.randn(64, generator=generator())
    steps = torch.where(torch.arange(64) < filled, 1.0, torch.inf)
    agent.weigh(advantage, steps, 1)
    known = advantage[:filled]
    best = known >= agent.threshold(quantile)
    expected = known >= known.quantile(quantile) if filled else best
    assert torch.equal(best, expected)


def test_ranks_are_the_same_with_and_without_sorting():
    values = torch.randn(1000, generator=generator()).round(decimals=1)  # with ties
    for rank in torch.tensor([0, 1, 500, 999]):
        one, other = (value_at_rank(values, rank, sort) for sort in (False, True))
        assert one.shape == other.shape == ()
        assert one == other == sorted(values.tolist())[rank]


def test_trained_policy_imitates_relabeled_goals_only(tmp_path, monkeypatch):
    seen = []
    update = WGCSL.update
    monkeypatch.setattr(
        WGCSL, "update", lambda self, batch, *rest: seen.append(batch) or update(self, batch, *rest)
    )
    agent = tiny_run(tmp_path / "run", algo="wgcsl", epochs=1)
    assert agent.config.algo_config.learning_rate == 5e-4
    for batch in seen:
        original = torch.isinf(batch.steps_to_goal)
        assert 0 < original.float().mean() < 0.5  # the critic keeps a fifth of the goals
        assert torch.isfinite(batch.relabeled.steps_to_goal).all()
        assert torch.equal(batch.goal[~original], batch.relabeled.goal[~original])
        assert torch.equal(batch.state, batch.relabeled.state)


@pytest.mark.parametrize("critic", CRITICS)
def test_gradients_equal_the_textbook_computation(critic):
    agent = make_algorithm(WGCSL, critic, batch_size=64, best_growth=0.1).double()
    batch = double(random_batch())
    plain = copy.deepcopy(agent)
    losses = agent.compute_gradients(batch, 3)

    s, a, g, s2, r, end, _, relabeled, *_ = batch
    next_q = plain.critic_target(s2, plain.actor_target(s2, g), g).detach()
    critic_loss = F.mse_loss(plain.critic(s, a, g), (r + 0.98 * next_q * ~end).clamp(-50, 0))
    mean_q = plain.critic(s, a, g).mean()
    _, _, g, _, r, end, k, *_ = relabeled  # the policy sees relabeled goals only
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
    expected = [critic_loss, policy_loss, mean_q, weight.mean()]
    assert losses.tolist() == pytest.approx([x.item() for x in expected], rel=1e-6)
    assert_gradients(agent.critic, plain.critic, critic_loss)
    assert_gradients(agent.actor, plain.actor, policy_loss)


def test_targets_move_at_the_end_of_a_cycle():
    agent = make_algorithm(WGCSL, batch_size=64)
    target = next(agent.critic_target.parameters())
    assert changes(target, [lambda: agent.update(random_batch(), 1, generator())]) == [False]
    assert changes(target, [agent.end_cycle]) == [True]
