"""TD3: clipped double Q-learning, target policy smoothing, delayed updates."""

import copy

import pytest
import torch
from torch.nn import functional as F

from mrn.algorithms import TD3
from mrn.algorithms.losses import smooth_action
from mrn.critics import CRITICS
from tests.algorithms.helpers import (
    assert_gradients,
    changes,
    double,
    generator,
    make_algorithm,
    random_batch,
)


def test_smoothing_by_hand():
    action = torch.tensor([0.0, 0.0, 0.9, -0.9])
    noise = torch.tensor([0.2, -3.0, 0.4, -0.05])
    assert smooth_action(action, noise, 0.5).tolist() == pytest.approx([0.2, -0.5, 1.0, -0.95])


@pytest.mark.parametrize("critic", CRITICS)
def test_gradients_equal_the_textbook_computation(critic):
    agent = make_algorithm(TD3, critic, action_penalty=0.5).double()
    batch = double(random_batch())
    plain = copy.deepcopy(agent)
    losses = agent.compute_gradients(batch, True, generator())

    s, a, g, s2, r, end, *_ = batch
    noise = 0.2 * torch.randn(a.shape, generator=generator(), dtype=torch.float64)
    a2 = (plain.actor_target(s2, g) + noise.clamp(-0.5, 0.5)).clamp(-1, 1)
    values = torch.stack([q(s2, a2, g).detach() for q in (plain.critic_target, plain.twin_target)])
    target = (r + 0.98 * values.min(dim=0).values * ~end).clamp(-50, 0)
    critic_loss = F.mse_loss(plain.critic(s, a, g), target)
    twin_loss = F.mse_loss(plain.twin(s, a, g), target)
    action = plain.actor(s, g)
    policy_loss = -plain.critic(s, action, g).mean() + 0.5 * action.pow(2).mean()

    # The actor's loss counts twice, because half of the updates skip it.
    expected = [critic_loss + twin_loss, 2 * policy_loss, plain.critic(s, a, g).mean()]
    assert losses.tolist() == pytest.approx([x.item() for x in expected], rel=1e-6)
    assert_gradients(agent.critic, plain.critic, critic_loss)
    assert_gradients(agent.twin, plain.twin, twin_loss)
    assert_gradients(agent.actor, plain.actor, policy_loss)


def test_targets_take_the_minimum_and_are_clipped():
    agent, batch = make_algorithm(TD3), random_batch()
    action = torch.zeros_like(batch.action)
    for first, second in ((-3.0, -7.0), (-7.0, -3.0)):
        agent.critic_target.forward = lambda s, a, g, q=first: torch.full((len(s),), q)
        agent.twin_target.forward = lambda s, a, g, q=second: torch.full((len(s),), q)
        expected = batch.reward - 0.98 * 7 * ~batch.terminated
        torch.testing.assert_close(agent.target(batch, action), expected)
    agent.twin_target.forward = lambda s, a, g: torch.full((len(s),), -1e3)
    assert agent.target(batch, action).min() == pytest.approx(-50)


def test_twin_critics_differ_initially():
    agent, batch = make_algorithm(TD3), random_batch()
    inputs = (batch.state, batch.action, batch.goal)
    assert (agent.critic(*inputs) - agent.twin(*inputs)).abs().max() > 1e-3


def test_actor_and_targets_are_updated_at_their_intervals():
    agent = make_algorithm(TD3, policy_delay=3, target_update_interval=2, tau=0.25)
    noise = generator()

    def updates():
        return [lambda n=n: agent.update(random_batch(), n, noise) for n in range(1, 7)]

    assert changes(next(agent.actor.parameters()), updates()) == [False, False, True] * 2
    assert changes(next(agent.twin.parameters()), updates()) == [True] * 6
    for target in (agent.critic_target, agent.twin_target):
        assert changes(next(target.parameters()), updates()) == [False, True] * 3
    target, network = next(agent.actor_target.parameters()), next(agent.actor.parameters())
    before = target.clone()
    agent.update(random_batch(), 6, noise)
    torch.testing.assert_close(target, 0.75 * before + 0.25 * network)
    agent.end_cycle()
    torch.testing.assert_close(target, 0.75 * before + 0.25 * network)
    # In between, the actor's optimizer pauses.
    assert agent.actor_optimizer.steps[0] == 9
    assert agent.optimizer.steps[0] == 25


def test_targets_can_move_once_per_cycle():
    agent = make_algorithm(TD3, target_update_interval=0, tau=0.1)
    target, before = next(agent.twin_target.parameters()), None
    steps = [lambda n=n: agent.update(random_batch(), n, generator()) for n in range(1, 5)]
    assert changes(target, steps) == [False] * 4
    before = target.clone()
    agent.end_cycle()
    torch.testing.assert_close(target, 0.9 * before + 0.1 * next(agent.twin.parameters()))


def test_mean_actor_loss_over_updates_is_that_of_computed_losses():
    agent, losses = make_algorithm(TD3, policy_delay=2, learning_rate=0.0), []
    for number in range(1, 5):
        losses.append(agent.update(random_batch(), number, generator())[1].item())
    assert losses[0] == losses[2] == 0
    action = agent.actor(random_batch().state, random_batch().goal)
    q = agent.critic(random_batch().state, action, random_batch().goal)
    plain = (action.square().mean() - q.mean()).item()
    assert sum(losses) / 4 == pytest.approx(plain, rel=1e-5)


def test_goal_side_of_each_critic_is_computed_once_per_update():
    agent, calls = make_algorithm(TD3), []
    for critic in (agent.critic, agent.twin):
        side = critic.goal_side
        critic.goal_side = lambda s, g, side=side: calls.append(1) or side(s, g)
    agent.update(random_batch(), 2, generator())
    assert len(calls) == 2
