"""Critics: parameter counts, the two sides, guarantees."""

import numpy as np
import pytest
import torch

from mrn.critics import CRITICS, make_critic
from mrn.critics.base import Linear, count_parameters, safe_norm
from mrn.critics.metric import MetricCritic
from mrn.envs import TASKS
from mrn.utils.errors import UserError
from scripts.critic_scale import measure as start

STATE, ACTION, GOAL = 25, 4, 3
SIZES = (10, 4, 3), (STATE, ACTION, GOAL)
"""Dims of FetchReach and FetchPush."""


def inputs(batch: int = 16, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(batch, STATE, generator=generator),
        torch.rand(batch, ACTION, generator=generator) * 2 - 1,
        torch.randn(batch, GOAL, generator=generator),
    )


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", CRITICS)
def test_every_critic_matches_the_monolithic_parameter_count(name, task):
    spec = TASKS[task].spec
    sizes = (spec.state_dim, spec.action_dim, spec.goal_dim)
    with torch.device("meta"):
        count = count_parameters(make_critic(name, *sizes))
    inputs = sum(sizes)
    monolithic = (inputs + 1) * 256 + 2 * 257 * 256 + 257
    assert count == pytest.approx(monolithic, rel=0.03)


def test_published_widths_are_kept_within_the_tolerance():
    critic = make_critic("mrn", STATE, ACTION, GOAL)
    assert isinstance(critic, MetricCritic)
    assert [layer.out_features for layer in (critic.e1[0], critic.e2[2])] == [176, 176]
    head = critic.head
    assert (head.hidden.out_features, head.outputs[0].in_features) == (352, 176)
    assert [layer.out_features for layer in head.outputs] == [16, 16]
    assert make_critic("dn", STATE, ACTION, GOAL).head.u.out_features == 162
    assert len(make_critic("wn", STATE, ACTION, GOAL).head.concave.slope) == 62
    assert make_critic("dn-released", STATE, ACTION, GOAL).head.w.shape == (162, 162)
    assert len(make_critic("wn-released", STATE, ACTION, GOAL).head.concave.slope) == 62
    # The published width fits on FetchReach only.
    widths = [make_critic("pqe-released", *dims).head.projection[0].out_features for dims in SIZES]
    assert widths == [300, 280]


def test_redundant_weights_do_not_count():
    """PQE's deep linear network has 64 + 64 x 64 + 64 x 64 + 64 x 16 weights and 16 offsets."""
    for dims in SIZES:
        critic = make_critic("pqe-released", *dims)
        weights = sum(weight.numel() for weight in critic.parameters())
        assert weights - count_parameters(critic) == 64 + 2 * 64 * 64 + 64 * 16
        assert sum(weight.numel() for weight in critic.head.mixture.parameters()) == 9280 + 16


@pytest.mark.parametrize("name", CRITICS)
def test_score_of_the_goal_side_equals_forward(name):
    critic = make_critic(name, STATE, ACTION, GOAL)
    state, action, goal = inputs()
    q = critic(state, action, goal)
    assert q.shape == (16,)
    assert torch.equal(q, critic.score(state, action, critic.goal_side(state, goal)))
    _, other_action, other_goal = inputs(seed=1)
    assert not torch.allclose(q, critic(state, other_action, goal))
    assert not torch.allclose(q, critic(state, action, other_goal))


@pytest.mark.parametrize("name", ["dn", "wn", "pqe", "iqe"])
def test_initial_distances_have_the_scale_of_mrn(name):
    found, reference = start(name), start("mrn")
    assert 1 / 3 < found.distance / reference.distance < 3
    assert 1 / 3 < found.slope / reference.slope < 3


def test_initial_scale_by_hand(monkeypatch):
    """Q = -5 + 3 a_0 + 4 a_1 has mean -5 and slope 5; the global random state is unchanged."""
    monkeypatch.setattr(
        "scripts.critic_scale.make_critic", lambda *_: lambda s, a, g: 3 * a[:, 0] + 4 * a[:, 1] - 5
    )
    before = torch.get_rng_state()
    found = start("mrn")
    assert torch.equal(torch.get_rng_state(), before)
    assert found.slope == pytest.approx(5)
    assert found.distance == pytest.approx(5, abs=0.3)


@pytest.mark.parametrize("name", CRITICS)
def test_metric_critics_are_minus_a_distance(name):
    critic = make_critic(name, STATE, ACTION, GOAL)
    expected = name not in ("monolithic", "bvn", "uvfa", "mrn-squared")
    assert critic.is_quasimetric is expected
    if isinstance(critic, MetricCritic):
        assert (critic(*inputs(256)) <= 0).all()


def test_only_bvn_has_the_state_in_its_goal_side():
    state, _, goal = inputs()
    for name, differs in (("uvfa", False), ("bvn", True)):
        critic = make_critic(name, STATE, ACTION, GOAL)
        sides = [critic.goal_side(s, goal) for s in (state, state + 1)]
        assert torch.equal(*sides) is not differs


def test_only_sag_has_the_action_in_e2():
    """With e1 independent of the action, only e2 can distinguish actions."""
    state, action, goal = inputs()
    for name, differs in (("mrn", False), ("mrn-sag", True)):
        critic = make_critic(name, STATE, ACTION, GOAL)
        assert isinstance(critic, MetricCritic)
        with torch.no_grad():
            critic.e1[0].weight[:, STATE:] = 0
        same = torch.equal(critic(state, action, goal), critic(state, -action, goal))
        assert same is not differs


def test_hidden_dim_scales_every_critic():
    for name in CRITICS:
        narrow = count_parameters(make_critic(name, 10, 4, 3, hidden_dim=128))
        assert narrow == pytest.approx(18 * 128 + 2 * 129 * 128 + 129, rel=0.03), name


@pytest.mark.parametrize("bias", [True, False])
def test_linear_equals_the_layer_of_torch(bias):
    torch.manual_seed(0)
    layer, x = Linear(5, 3, bias=bias), torch.randn(4, 5)
    torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))


def test_safe_norm():
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
    norm = safe_norm(x)
    assert norm.tolist() == [5, 0]
    norm.sum().backward()
    assert x.grad is not None
    assert torch.allclose(x.grad, torch.tensor([[0.6, 0.8], [0.0, 0.0]]))


def test_unknown_critic_suggests_the_closest_name():
    with pytest.raises(UserError, match=r"unknown critic 'mnr'\. Did you mean 'mrn'\?.*iqe"):
        make_critic("mnr", STATE, ACTION, GOAL)


@pytest.mark.parametrize("name", ["mrn", "monolithic", "uvfa"])
@pytest.mark.parametrize("argument", ["state_dim", "action_dim", "goal_dim", "hidden_dim"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "must be at least 1, got 0"),
        (-1, "must be at least 1, got -1"),
        (25.0, r"must be of type int, got 25\.0"),
        (True, "must be of type int, got True"),
        ("25", "must be of type int, got '25'"),
        (None, "must be of type int, got None"),
    ],
)
def test_invalid_size_raises_with_its_name(name, argument, value, message):
    sizes = {"state_dim": STATE, "action_dim": ACTION, "goal_dim": GOAL, "hidden_dim": 64}
    with pytest.raises(UserError, match=f"^{argument} {message}$"):
        make_critic(name, **(sizes | {argument: value}))


def test_numpy_sizes_are_accepted():
    sizes = np.array([STATE, ACTION, GOAL])
    critic = make_critic("mrn", *sizes)
    assert count_parameters(critic) == count_parameters(make_critic("mrn", STATE, ACTION, GOAL))
