"""MHER: losses, the model of a solvable toy, imagined goals and their place in the mixture."""

import copy

import pytest
import torch
from torch.nn import functional as F

import mrn
from mrn.algorithms import MHER
from mrn.algorithms.dynamics import Change, Dynamics
from mrn.config import Config
from mrn.critics import CRITICS, Dims
from mrn.envs import TaskSpec, find_task
from mrn.envs.rewards import FetchReward
from mrn.replay import Episodes, Hindsight, Normalizer, ReplayBuffer
from mrn.training.trainer import Trainer
from tests.algorithms.helpers import (
    assert_gradients,
    changes,
    double,
    generator,
    make_algorithm,
    random_batch,
)
from tests.training.helpers import TINY

STEP, HORIZON, CPU = 0.2, 10, torch.device("cpu")


@pytest.mark.parametrize("critic", CRITICS)
def test_gradients_equal_the_textbook_computation(critic):
    agent = make_algorithm(MHER, critic).double()
    batch = double(random_batch())
    plain = copy.deepcopy(agent)
    losses = agent.compute_gradients(batch)
    s, a, g, s2, r, end, k, *_ = batch
    next_q = plain.critic_target(s2, plain.actor_target(s2, g), g).detach()
    critic_loss = F.mse_loss(plain.critic(s, a, g), (r + 0.98 * next_q * ~end).clamp(-50, 0))
    action = plain.actor(s, g)
    relabeled = torch.isfinite(k)
    assert 0 < relabeled.sum() < len(k)
    imitation = ((action - a)[relabeled] ** 2).mean(dim=-1).sum() / len(k)
    policy_loss = -plain.critic(s, action, g).mean() + action.pow(2).mean() + 3 * imitation
    expected = [critic_loss, policy_loss, plain.critic(s, a, g).mean()]
    assert losses.tolist() == pytest.approx([x.item() for x in expected], rel=1e-6)
    assert_gradients(agent.critic, plain.critic, critic_loss)
    assert_gradients(agent.actor, plain.actor, policy_loss)


def test_imitation_loss_by_hand():
    agent = make_algorithm(MHER, action_penalty=0.0)
    batch = random_batch(2)._replace(
        action=torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
        steps_to_goal=torch.tensor([4.0, torch.inf]),
    )
    policy = torch.tensor([[0.0, 0.5, 0.0], [1.0, 1.0, 1.0]])
    loss = agent.policy_loss(batch, policy, torch.tensor([-1.0, -3.0]))
    # -mean Q = 2. Only the first transition counts: 3 x (1 + 0.25) / 3 entries / 2 transitions.
    assert loss.item() == pytest.approx(2 + 1.25 / 2)


def test_model_loss_by_hand_and_its_untrained_prediction():
    model = Dynamics(Dims(state=2, action=1, goal=1), 4)
    state, action = torch.ones(2, 2), torch.ones(2, 1)
    assert all((part == 0).all() for part in model(state, action))
    with torch.no_grad():
        model.net[-1].bias.copy_(torch.tensor([1.0, 0.0, -1.0]))
    target = Change(torch.tensor([[1.0, 3.0], [0.0, 0.0]]), torch.tensor([[-1.0], [1.0]]))
    assert model.loss(state, action, target).item() == pytest.approx((0 + 3 + 0 + 1 + 0 + 2) / 6)
    assert model(state, action).achieved.tolist() == [[-1.0], [-1.0]]


def test_model_takes_its_own_steps():
    """Each update takes `model_updates` steps, on the batch's changes of state and goal."""
    agent, batch = make_algorithm(MHER, model_updates=3), random_batch()
    expected = copy.deepcopy(agent.model)
    optimizer = torch.optim.Adam(expected.parameters(), lr=1e-3)
    first = None
    for _ in range(3):
        predicted = torch.cat(expected(batch.state, batch.action), dim=-1)
        target = torch.cat([batch.next_state - batch.state, batch.achieved_change], dim=-1)
        loss = (predicted - target).abs().mean()
        first = loss.item() if first is None else first
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    losses = agent.update(batch, 1, generator())
    assert losses[-1].item() == pytest.approx(first)
    for ours, theirs in zip(agent.model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)
    weight = next(agent.model.parameters())
    assert changes(weight, [lambda: agent.compute_gradients(batch)]) == [False]


class Plane:
    """A point in [-1, 1]^2 that moves by up to `STEP` along both axes and stops at the walls.

    With `hidden`, the state does not contain the position but the last action, which is the
    velocity with which the position changes next; there are no walls.
    """

    def __init__(self, hidden: bool) -> None:
        self.hidden = hidden
        self.spec = TaskSpec("Plane", "Plane-v0", 2, 2, (-1.0,) * 2, (1.0,) * 2, HORIZON)

    def step(self, state, position, action):
        if self.hidden:
            return action, position + STEP * state
        position = (position + STEP * action).clamp(-1, 1)
        return position, position

    def episodes(self, count: int) -> Episodes:
        noise, found = generator(1), Episodes.allocate(self.spec, count)
        position = torch.rand(count, 2, generator=noise) * 2 - 1
        state = torch.zeros(count, 2) if self.hidden else position
        found.goal[:] = (torch.rand(count, 1, 2, generator=noise) * 2 - 1).numpy()
        found.length[:] = HORIZON
        for t in range(HORIZON + 1):
            action = torch.rand(count, 2, generator=noise) * 2 - 1
            found.state[:, t], found.achieved[:, t] = state, position
            found.action[:, t] = action
            state, position = self.step(state, position, action)
        return found


@pytest.fixture(scope="module", params=[False, True], ids=["visible", "hidden"])
def trained(request):
    """Train on random walks of the plane; return the parts and the losses of the model."""
    plane = Plane(request.param)
    buffer = ReplayBuffer(plane.spec, 100 * HORIZON, CPU, 100)
    buffer.add(plane.episodes(100))
    torch.manual_seed(0)
    agent = MHER(
        Dims(2, 2, 2),
        lambda: mrn.make_critic("mrn", 2, 2, 2, hidden_dim=16),
        MHER.Settings(hidden_dim=32, batch_size=128, learning_rate=3e-3),
    )
    normalizer = Normalizer(plane.spec)

    def imagine(state, goal, uniform, noise):
        inputs = normalizer.state(state), normalizer.goal(goal)
        change, steps = agent.imagine(*inputs, uniform, noise)
        return change / normalizer.goal.scale, steps

    reward = FetchReward(0.05)
    hindsight = Hindsight(buffer, {"imagined": 0.8}, reward, discount=0.98, imagine=imagine)
    noise = generator()
    normalizer.update(hindsight.newest(100 * HORIZON, noise))
    losses = [
        agent.update(normalizer(hindsight.sample(128, noise)), n, noise)[-1].item()
        for n in range(1, 201)
    ]
    return plane, agent, normalizer, hindsight, losses


def test_error_of_the_model_falls(trained):
    *_, losses = trained
    assert sum(losses[-20:]) / 20 < 0.1 * losses[0]


def test_imagined_goals_are_what_the_policy_achieves(trained):
    """Follow the policy through the true dynamics with the same noise."""
    plane, agent, normalizer, hindsight, _ = trained
    rows = hindsight.buffer.newest(1000)
    stored = hindsight.buffer.gather(rows)
    uniform = torch.rand(1000, generator=generator(2), dtype=torch.float64)
    goal, steps = hindsight.goals.select(rows, stored, uniform, uniform * 0.8, generator(3))
    assert sorted(set(steps.tolist())) == [1, 2, 3, 4, 5, 6]
    noise = torch.randn(5, 1000, 2, generator=generator(3))
    state, position = stored.next_state, stored.next_achieved
    expected = position.clone()
    for taken in range(5):
        inputs = normalizer.state(state), normalizer.goal(stored.goal)
        action = (agent.act(*inputs) + 0.2 * noise[taken]).clamp(-1, 1)
        state, position = plane.step(state, position, action)
        expected = torch.where((taken + 1 < steps).unsqueeze(-1), position, expected)
    assert torch.equal(goal[steps == 1], stored.next_achieved[steps == 1])
    error = (goal - expected).norm(dim=-1)
    moved = (goal - stored.next_achieved).norm(dim=-1)
    assert moved.max() > 2 * STEP
    assert error.mean() < 0.15 * moved.mean()
    # Reachable: no faster than the point can move.
    reach = STEP * (steps - 1).unsqueeze(-1)
    assert ((goal - stored.next_achieved).abs() <= 1.1 * reach + 0.02).all()


def test_batches_contain_imagined_goals_with_their_rewards(trained):
    _, _, _, hindsight, _ = trained
    batch = hindsight.sample(4000, generator())
    ahead = torch.isfinite(batch.steps_to_goal)
    assert ahead.float().mean().item() == pytest.approx(0.8, abs=0.03)
    reached = batch.reward == 0
    assert reached[batch.steps_to_goal == 1].all()
    assert 0 < reached[ahead].float().mean() < 1
    # The normalizer sees no imagined goal.
    newest = hindsight.newest(1000, generator())
    found = torch.isfinite(newest.steps_to_goal)
    stored = hindsight.buffer.gather(hindsight.buffer.newest(1000))
    assert torch.equal(newest.goal[found], stored.next_achieved[found])


def test_trainer_connects_model_and_sampler():
    """The trainer normalizes the inputs of the model and scales its predictions back."""
    config = Config.of(
        "FetchReach", algo="mher", **{k: v for k, v in TINY.items() if k != "threads"}
    )
    trainer = Trainer(config, find_task("FetchReach"), CPU)
    agent, normalizer = trainer.agent.algorithm, trainer.agent.normalizer
    normalizer.goal.update(torch.randn(50, 3) * torch.tensor([1.0, 2.0, 4.0]))
    normalizer.state.update(torch.randn(50, 10) + 1)
    with torch.no_grad():  # predict a change of 0.1 standard deviations per step
        agent.model.net[-1].bias.fill_(0.1)
    state, goal, uniform = torch.randn(6, 10), torch.randn(6, 3), (torch.arange(6) + 0.5) / 6
    change, steps = trainer.hindsight.goals.imagine(state, goal, uniform.double(), generator())
    assert steps.tolist() == [0, 1, 2, 3, 4, 5]
    std = (normalizer.goal.squares / normalizer.goal.count).sqrt().float()
    torch.testing.assert_close(change, 0.1 * steps.unsqueeze(-1) * std, rtol=1e-5, atol=1e-6)


def test_imagined_goals_need_a_model_and_the_other_way_round():
    for recipe in ("paper", "fast"):
        config = Config("FetchReach", algo="mher", recipe=recipe)
        assert config.replay.goal_weights == {"imagined": 0.8}
    mixed = Config.of("FetchReach", algo="mher", goal_mix="imagined=0.4,future=0.4")
    assert mixed.replay.goal_weights == {"imagined": 0.4, "future": 0.4}
    Config.of("FetchReach", algo="mher", goal_mix="imagined=0,future=0.8")
    with pytest.raises(mrn.UserError, match="'ddpg' has no model for .*'imagined': .* choose mher"):
        Config.of("FetchReach", goal_mix="imagined=0.4")
    with pytest.raises(mrn.UserError, match="'mher' needs the strategy 'imagined': pass goal_mix"):
        Config.of("FetchReach", algo="mher", goal_mix="future=0.8")
    with pytest.raises(mrn.UserError, match="'imagined=0.8' replaces .* and her_ratio: change its"):
        Config.of("FetchReach", algo="mher", her_ratio=0.5)
