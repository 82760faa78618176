"""Quasimetric algorithms: gradients, heads, units, constraints, exact values of a grid world."""

import copy
import math

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch.nn import functional as F

import mrn
from mrn.algorithms import ALGORITHMS, CMD, CRL, MQE, QRL, TMD
from mrn.algorithms.quasimetric import QuasimetricAlgorithm
from mrn.critics import CRITICS
from mrn.critics.heads import HEADS
from tests.algorithms import gridworld
from tests.algorithms.helpers import (
    assert_gradients,
    double,
    generator,
    make_algorithm,
    random_batch,
)

NAMES = [name for name, kind in ALGORITHMS.items() if issubclass(kind, QuasimetricAlgorithm)]
LIMIT = 0.2
"""Distance limit of backups in the tests; some random distances are above it, others below."""
QUASIMETRIC_HEADS = [name for name, head in HEADS.items() if head.is_quasimetric]


def d(critic, x, y):
    """Return the distances of all pairs by a loop over the goals."""
    return torch.stack([critic.head(x, each.expand_as(x)) for each in y], dim=1)


def phi(critic, batch):
    return critic.e1(torch.cat([batch.state, batch.action], dim=-1))


def cross_entropy(logits, smoothing=0.1):
    return F.cross_entropy(logits, torch.arange(len(logits)), label_smoothing=smoothing)


def linex(distance, remaining, discount, limit):
    """Return the loss of a single pair at a time, halves over all and over matching pairs."""
    assert (remaining > LIMIT).any()
    assert (remaining < LIMIT).any()
    delta = distance - torch.clamp(remaining, max=LIMIT)
    loss = torch.where(delta <= limit, discount * torch.exp(delta) - delta, delta)
    return (loss.mean() + loss.diagonal().mean()) / 2


def zero(distance):
    return ((torch.exp(-distance) - 1) ** 2).mean()


def crl_loss(agent, batch):
    logits = agent.offset - d(agent.critic, phi(agent.critic, batch), goals(agent, batch))
    penalty = (torch.logsumexp(logits, dim=1) - math.log(64)).pow(2).mean()
    return (cross_entropy(logits) + cross_entropy(logits.T)) / 2 + 0.1 * penalty


def cmd_loss(agent, batch):
    critic, future = agent.critic, batch.trajectory
    distance = d(critic, phi(critic, batch), goals(agent, batch))
    logits = agent.offset(future.future_goal)[:, 0] - distance
    penalty = (torch.logsumexp(logits, dim=1) - math.log(64)).pow(2).mean()
    other = torch.cat([batch.action[-1:], batch.action[:-1]])
    at_goal = critic.head(
        critic.e1(torch.cat([batch.next_state, other], dim=-1)), critic.e2(future.achieved)
    )
    return (cross_entropy(logits) + cross_entropy(logits.T)) / 2 + 0.01 * penalty + zero(at_goal)


def tmd_loss(agent, batch):
    critic, start = agent.critic, phi(agent.critic, batch)
    state, next_state = critic.psi(batch.state), critic.psi(batch.next_state)
    goal = goals(agent, batch)
    distance, state_distance = d(critic, start, goal), d(critic, state, goal)
    backup = linex(distance, d(critic, next_state, goal).detach(), 0.98, 3)
    at_goal = critic.head(next_state, critic.e2(batch.trajectory.achieved))
    return (
        (cross_entropy(-distance.T) + cross_entropy(-state_distance.T)) / 2
        + zero(critic.head(state, start))
        + zero(at_goal)
        + 0.05 * backup
    )


def mqe_loss(agent, batch):
    critic, start, goal = agent.critic, phi(agent.critic, batch), goals(agent, batch)
    future, state = batch.trajectory, critic.psi(batch.state)
    remaining = d(critic, critic.psi(future.waypoint), goal).detach()
    discount = torch.stack([0.98**k for k in future.waypoint_steps])[:, None]
    backups = [linex(d(critic, each, goal), remaining, discount, 5) for each in (start, state)]
    at_goal = critic.head(critic.psi(batch.next_state), critic.e2(future.achieved))
    return sum(backups) / 2 + zero(critic.head(state, start)) + zero(at_goal)


def qrl_loss(agent, batch):
    critic, achieved = agent.critic, agent.critic.e2(batch.trajectory.achieved)
    state, next_state = critic.psi(batch.state), critic.psi(batch.next_state)
    push = [critic.head(state, torch.cat([y[-1:], y[:-1]])) for y in (next_state, achieved)]
    push = sum(10 * torch.log1p(torch.exp((15 - each) / 10)).mean() for each in push) / 2
    over = torch.clamp(critic.head(state, next_state) - 1, min=0).pow(2).mean()
    over = over + critic.head(next_state, achieved).pow(2).mean()
    predicted = state + critic.e1(torch.cat([state, batch.action], dim=-1))
    ways = critic.head(predicted, next_state).pow(2) + critic.head(next_state, predicted).pow(2)
    multiplier = torch.log1p(agent.raw_multiplier.exp())
    lagrangian = multiplier.detach() * over - multiplier * (over.detach() - 0.25**2)
    return push + lagrangian + 0.1 * ways.mean() / 2


def goals(agent, batch):
    return agent.critic.e2(batch.trajectory.future_goal)


LOSSES = {"crl": crl_loss, "cmd": cmd_loss, "tmd": tmd_loss, "mqe": mqe_loss, "qrl": qrl_loss}


@pytest.mark.parametrize("critic", ["mrn", "iqe"])
@pytest.mark.parametrize("name", NAMES)
def test_gradients_equal_the_textbook_computation(name, critic):
    settings = {"distance_limit": LIMIT} if name in ("tmd", "mqe") else {}
    settings |= {"ent_coef": 0.3, "target_entropy": -0.5}
    agent = make_algorithm(ALGORITHMS[name], critic, **settings).double()
    if name == "qrl":
        torch.nn.init.normal_(agent.critic.e1[-1].weight, std=0.1)  # starts at 0
    plain, batch = copy.deepcopy(agent), double(random_batch())
    metrics = dict(zip(agent.METRICS, agent.compute_gradients(batch, generator()), strict=True))

    loss = LOSSES[name](plain, batch)
    assert metrics["critic_loss"].item() == pytest.approx(loss.item(), rel=1e-9)
    assert_gradients(agent.critic, plain.critic, loss)
    for own in set(dict(agent.named_parameters())) - {"log_temperature"}:
        if not own.startswith(("critic.", "actor.")):  # c(g), the offset, the multiplier
            (expected,) = torch.autograd.grad(loss, plain.get_parameter(own), retain_graph=True)
            torch.testing.assert_close(agent.get_parameter(own).grad, expected)

    noise = torch.randn(batch.action.shape, generator=generator(), dtype=torch.float64)
    action, log_prob = plain.actor.sample(batch.state, batch.goal, noise)
    q = plain.critic(batch.state, action, batch.goal)
    value = q if name == "qrl" else q / -math.log(0.98)
    alpha = plain.log_temperature.exp().item()
    policy_loss = (alpha * log_prob - value).mean()
    assert_gradients(agent.actor, plain.actor, policy_loss)
    assert metrics["actor_loss"].item() == pytest.approx(policy_loss.item(), rel=1e-9)
    assert metrics["mean_q"].item() == pytest.approx(q.mean().item(), rel=1e-9)
    slope = -alpha * (log_prob.mean().item() - 1.5)
    assert agent.log_temperature.grad.item() == pytest.approx(slope, rel=1e-9)


def test_inner_product_logits_equal_a_loop():
    agent, batch = make_algorithm(CRL, "uvfa"), random_batch()
    goal = batch.trajectory.future_goal
    logits = agent.logits(batch.state, batch.action, goal)
    for i, j in ((0, 0), (3, 50), (63, 1)):
        row = slice(i, i + 1), slice(j, j + 1)
        one = agent.critic(batch.state[row[0]], batch.action[row[0]], goal[row[1]])
        torch.testing.assert_close(logits[i, j], one[0] + agent.offset)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_direction_of_info_nce_is_a_setting(direction):
    settings = {"info_nce": direction, "logsumexp_coef": 0.0, "label_smoothing": 0.0}
    agent, batch = make_algorithm(CRL, **settings), random_batch()
    loss, _ = agent.critic_loss(batch, batch.trajectory)
    logits = agent.logits(batch.state, batch.action, batch.trajectory.future_goal)
    expected = cross_entropy(logits if direction == "forward" else logits.T, smoothing=0.0)
    torch.testing.assert_close(loss, expected)


@pytest.mark.parametrize("critic", QUASIMETRIC_HEADS)
@pytest.mark.parametrize("name", NAMES)
def test_every_head_gets_finite_gradients_in_every_network(name, critic):
    agent, batch = make_algorithm(ALGORITHMS[name], critic), random_batch()
    # Two updates: the last layer of QRL's model starts at 0, so that the others have no gradient.
    for step in (1, 2):
        metrics = agent.update(batch, step, generator(step))
        assert torch.isfinite(metrics).all()
    networks = {"actor": agent.actor, **dict(agent.critic.named_children())}
    networks |= {"offset": agent.offset} if name == "cmd" else {}
    for network, module in networks.items():
        gradients = [weight.grad for weight in module.parameters()]
        assert all(torch.isfinite(gradient).all() for gradient in gradients)
        assert any(gradient.any() for gradient in gradients), network


@pytest.mark.parametrize("name", NAMES)
def test_critics_without_a_quasimetric_head_raise(name):
    usable = {critic for critic in CRITICS if ALGORITHMS[name].can_use(critic)}
    assert usable == {*QUASIMETRIC_HEADS, *(["uvfa"] if name == "crl" else [])}
    for critic in set(CRITICS) - usable:
        message = f"'{name}' cannot use critic '{critic}': choose one of mrn, mrn-sym, .*iqe"
        with pytest.raises(mrn.UserError, match=message):
            mrn.Config.of("FetchReach", algo=name, critic=critic)
        with pytest.raises(mrn.UserError, match="needs an .*MetricCritic with a quasimetric head"):
            make_algorithm(ALGORITHMS[name], critic)


def test_units_of_the_distance():
    for name in NAMES:
        agent = make_algorithm(ALGORITHMS[name])
        assert agent.is_log_occupancy is (name != "qrl")
        assert agent.discount == (1 if name == "qrl" else 0.98)
    assert not any(ALGORITHMS[name].is_log_occupancy for name in ("ddpg", "td3", "sac", "wgcsl"))


def test_actor_maximizes_minus_the_number_of_steps():
    q = torch.tensor([0.0, 3 * math.log(0.9), 7 * math.log(0.9)])
    value = make_algorithm(TMD, discount=0.9).actor_value(q)
    assert value.tolist() == pytest.approx([0, -3, -7], rel=1e-6)
    assert torch.equal(make_algorithm(QRL).actor_value(q), q)


@pytest.mark.parametrize(("limit", "bounded"), [(1.0, True), (1e9, False)])
def test_distances_of_unreached_goals_stay_bounded(limit, bounded):
    """Without a limit, backups push goals that no transition leads to further away forever."""
    agent = make_algorithm(MQE, distance_limit=limit, discount=0.9, learning_rate=1e-2)
    batch = random_batch()
    unreached = torch.ones_like(batch.trajectory.future_goal)
    batch = batch._replace(trajectory=batch.trajectory._replace(future_goal=unreached))
    for step in range(1, 101):
        agent.update(batch, step, generator(step))
    distance = -agent.critic(batch.state, batch.action, unreached).mean().item()
    longest = -batch.trajectory.waypoint_steps.max().item() * math.log(0.9)
    assert (distance < 1.0 + longest) is bounded


def test_model_starts_as_the_identity():
    agent, batch = make_algorithm(QRL), random_batch()
    state = agent.critic.psi(batch.state)
    assert torch.equal(agent.critic.embed(batch.state, batch.action), state)


def test_waypoints_and_future_goals_are_requested():
    sampling = make_algorithm(MQE, discount=0.9, waypoint_decay=0.8).trajectory_sampling
    assert (sampling.discount, sampling.next_state_prob) == (0.9, 0.2)
    assert sampling.waypoint_decay == 0.8
    for kind in (CRL, CMD, TMD):
        assert make_algorithm(kind, discount=0.9).trajectory_sampling.discount == 0.9


# Few updates for a fast suite; tests/learning has the numbers after convergence.
SHORT = {"crl": (250, 0.85), "cmd": (150, 0.8), "tmd": (150, 0.8), "mqe": (300, 0.6)}


@pytest.mark.parametrize("name", SHORT)
def test_logits_approach_the_log_occupancy_ratio(name):
    updates, expected = SHORT[name]
    agent = gridworld.train(ALGORITHMS[name], updates, discount=gridworld.DISCOUNT)
    assert gridworld.occupancy_correlation(agent.critic) > expected


def test_qrl_approaches_the_number_of_steps():
    agent = gridworld.train(QRL, 250)
    assert gridworld.step_correlation(agent.critic) > 0.85
    assert 1 < F.softplus(agent.raw_multiplier).item() < 100


def test_multiplier_rises_while_the_constraint_is_violated_and_falls_after():
    agent, batch = make_algorithm(QRL, slack=0.0), random_batch()
    raw = [agent.raw_multiplier.item()]
    for step in range(1, 4):
        agent.update(batch, step, generator())
        raw.append(agent.raw_multiplier.item())
    assert (np.diff(raw) > 0).all()
    easy = make_algorithm(QRL, slack=100.0)
    easy.update(batch, 1, generator())
    assert easy.raw_multiplier.item() < raw[0]


def test_grid_world_by_hand():
    steps, cells = gridworld.steps_between(), gridworld.CELLS
    start, end = cells.index((0, 0)), cells.index((0, 3))
    assert steps[start, end] == 3
    assert steps[start, cells.index((2, 2))] == 6  # around the walls
    assert spearmanr(steps.ravel(), steps.T.ravel()).statistic == pytest.approx(1)
    occupancy = gridworld.occupancy()
    np.testing.assert_allclose(occupancy.sum(axis=-1), 1)
    # Into the wall at once, p(start) is at least 1 - gamma.
    assert occupancy[start, 3, start] > 1 - gridworld.DISCOUNT
    batch = gridworld.Walks().batch(4000)
    cell, goal = batch.state.argmax(1), batch.trajectory.future_goal.argmax(1)
    move = (batch.action[:, None] == torch.tensor(gridworld.MOVES)).all(-1).int().argmax(1)
    here = cell == cells.index((3, 3))
    expected = occupancy[cell[here], move[here]].mean(axis=0)
    found = np.bincount(goal[here], minlength=len(cells)) / here.sum().item()
    np.testing.assert_allclose(found, expected, atol=0.06)
