"""DDPG: gradients, target updates, exploration."""

import copy
import warnings

import pytest
import torch
from torch.nn import functional as F

from mrn.algorithms.adam import Adam
from mrn.algorithms.ddpg import DDPG
from mrn.algorithms.losses import actor_loss, bellman_target
from mrn.critics import CRITICS
from tests.algorithms.helpers import DIMS, assert_gradients, double, make_algorithm, random_batch
from tests.training.helpers import tiny_run

GENERATOR = torch.Generator()  # unused: DDPG updates draw no random numbers


def algorithm(critic: str = "mrn", seed: int = 0, **settings) -> DDPG:
    return make_algorithm(DDPG, critic, seed, **settings)


def test_bellman_target_by_hand():
    reward = torch.tensor([-1.0, 0.0, -1.0, -1.0, 0.0])
    terminated = torch.tensor([False, False, True, False, False])
    next_q = torch.tensor([-2.0, -2.0, -2.0, -80.0, 3.0])
    target = bellman_target(reward, terminated, next_q, 0.9)
    # -1 - 1.8; 0 - 1.8; no bootstrap; clipped at -1/(1 - 0.9); clipped at 0.
    assert target.tolist() == pytest.approx([-2.8, -1.8, -1.0, -10.0, 0.0])


def test_actor_loss_by_hand():
    q, action = torch.tensor([-1.0, -3.0]), torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    assert actor_loss(q, action, penalty=2.0).item() == pytest.approx(2.0 + 2 * 1.5 / 4)


@pytest.mark.parametrize("critic", CRITICS)
def test_gradients_equal_the_textbook_computation(critic):
    agent = algorithm(critic).double()
    batch = double(random_batch())
    plain = copy.deepcopy(agent)
    losses = agent.compute_gradients(batch)

    s, a, g, s2, r, end, *_ = batch
    next_q = plain.critic_target(s2, plain.actor_target(s2, g), g).detach()
    target = (r + 0.98 * next_q * ~end).clamp(-50, 0)
    critic_loss = F.mse_loss(plain.critic(s, a, g), target)
    action = plain.actor(s, g)
    policy_loss = -plain.critic(s, action, g).mean() + action.pow(2).mean()

    expected = [critic_loss, policy_loss, plain.critic(s, a, g).mean()]
    assert losses.tolist() == pytest.approx([x.item() for x in expected], rel=1e-6)
    assert_gradients(agent.critic, plain.critic, critic_loss)
    assert_gradients(agent.actor, plain.actor, policy_loss)
    assert all(p.grad is None for p in agent.critic_target.parameters())


def test_both_gradients_are_taken_before_either_step():
    """The actor's gradient must use the critic's weights before the critic's step."""
    agent = algorithm()
    expected = copy.deepcopy(agent)
    agent.update(random_batch(), 1, GENERATOR)
    expected.compute_gradients(random_batch())
    optimizers = [
        torch.optim.Adam(part.parameters(), lr=1e-3) for part in (expected.actor, expected.critic)
    ]
    for optimizer in optimizers:
        optimizer.step()
    for ours, theirs in zip(agent.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)


def test_goal_side_is_computed_once_per_update():
    agent = algorithm()
    calls = []
    goal_side = agent.critic.goal_side
    agent.critic.goal_side = lambda s, g: calls.append(1) or goal_side(s, g)
    agent.update(random_batch(), 1, GENERATOR)
    assert len(calls) == 1


def test_updates_reduce_the_critic_loss_and_are_reproducible():
    runs = []
    for _ in range(2):
        agent = algorithm()
        runs.append(torch.stack([agent.update(random_batch(), 1, GENERATOR) for _ in range(60)]))
    assert torch.equal(runs[0], runs[1])
    assert runs[0][-1, 0] < 0.5 * runs[0][0, 0]


def test_targets_move_by_tau_at_the_end_of_a_cycle():
    agent = algorithm()
    before = copy.deepcopy(agent.critic_target)
    agent.update(random_batch(), 1, GENERATOR)
    assert all(
        torch.equal(a, b)
        for a, b in zip(agent.critic_target.parameters(), before.parameters(), strict=True)
    )
    agent.end_cycle()
    for target, old, new in zip(
        agent.critic_target.parameters(),
        before.parameters(),
        agent.critic.parameters(),
        strict=True,
    ):
        torch.testing.assert_close(target, 0.9 * old + 0.1 * new)


def test_targets_move_every_target_update_interval():
    agent = algorithm(target_update_interval=3, tau=0.25)
    target = next(agent.critic_target.parameters())
    moved = []
    for number in range(1, 8):
        before = target.clone()
        agent.update(random_batch(), number, GENERATOR)
        moved.append(not torch.equal(target, before))
        if moved[-1]:
            new = next(agent.critic.parameters())
            torch.testing.assert_close(target, 0.75 * before + 0.25 * new)
        before = target.clone()
        agent.end_cycle()
        assert torch.equal(target, before)
    assert moved == [False, False, True, False, False, True, False]


def test_actor_pauses_between_its_updates():
    """As in TD3: the actor's steps are those of an Adam that sees every second gradient only."""
    agent = algorithm(policy_delay=2)
    expected = copy.deepcopy(agent.actor)
    optimizer = torch.optim.Adam(expected.parameters(), lr=1e-3)
    for number in range(1, 7):
        before = copy.deepcopy(agent)
        metrics = agent.update(random_batch(), number, GENERATOR)
        loss = before.compute_gradients(random_batch())[1]  # scaled by policy_delay
        skipped = number % 2 == 1
        if not skipped:
            for weight, same in zip(expected.parameters(), before.actor.parameters(), strict=True):
                weight.grad = same.grad
            optimizer.step()
        for ours, theirs in zip(agent.actor.parameters(), expected.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs)
        # Scaled so that the mean over all updates is the mean of the computed losses.
        assert metrics[1].item() == pytest.approx(0 if skipped else loss.item())
    assert (agent.optimizer.steps[0], agent.optimizer.steps[-1]) == (3, 6)


def test_run_that_stepped_the_actor_on_momentum_warns_on_resume(tmp_path, monkeypatch):
    """Earlier versions took a step with a zero gradient instead of pausing."""

    def fill_gradients(self):
        for weight in self.weights:
            weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
        step(self)

    step = Adam.step
    with monkeypatch.context() as earlier:
        earlier.setattr(Adam, "step", fill_gradients)
        for delay in (1, 2):
            tiny_run(tmp_path / str(delay), epochs=1, policy_delay=delay)
    with pytest.warns(UserWarning, match="policy_delay 2 the actor now pauses.*results differ"):
        tiny_run(tmp_path / "2", epochs=2, policy_delay=2, resume=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny_run(tmp_path / "1", epochs=2, policy_delay=1, resume=True)


def test_exploration_noise_has_the_configured_distribution():
    agent = algorithm()
    with torch.no_grad():
        for parameter in agent.actor.parameters():
            parameter.zero_()  # the policy's action is 0
    n = 20_000
    state, goal = torch.zeros(n, DIMS.state), torch.zeros(n, DIMS.goal)
    generator = torch.Generator().manual_seed(0)
    action = agent.explorer(1, n, generator)(state, goal)
    assert action.abs().max() <= 1
    # P(|a| > 0.8): uniform rows only (0.2 of them); Gaussian noise of 0.2 is 4 sigma away.
    large = (action.abs() > 0.8).float().mean().item()
    assert large == pytest.approx(0.3 * 0.2, abs=0.005)
    # Variance: 0.3 of 1/3 and 0.7 of 0.04.
    assert action.var().item() == pytest.approx(0.3 / 3 + 0.7 * 0.04, rel=0.03)
    # A row is uniform as a whole, so large values occur together.
    rows = (action.abs() > 0.8).float()
    together = (rows[:, 0] * rows[:, 1]).mean().item()
    assert together == pytest.approx(0.3 * 0.04, abs=0.003)
    again = agent.explorer(1, n, generator.manual_seed(0))
    assert torch.equal(action, again(state, goal))
    assert torch.equal(agent.act(state, goal), torch.zeros(n, DIMS.action))
