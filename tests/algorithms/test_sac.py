"""SAC: policy density, losses, temperature, and a value without entropy."""

import copy
import math

import pytest
import torch
from scipy.integrate import quad
from torch.distributions import Normal, TanhTransform, TransformedDistribution
from torch.nn import functional as F

from mrn.algorithms import SAC
from mrn.algorithms.losses import temperature_loss
from mrn.algorithms.networks import squashed_log_prob
from mrn.critics import CRITICS
from tests.algorithms.helpers import (
    DIMS,
    assert_gradients,
    changes,
    double,
    generator,
    make_algorithm,
    random_batch,
)


def density(action: float, mean: float, std: float) -> float:
    """Return pi(a) in one dimension by our formula."""
    raw = torch.tensor([[math.atanh(action)]], dtype=torch.float64)
    log_std = torch.full_like(raw, math.log(std))
    return squashed_log_prob((raw - mean) / std, log_std, raw).exp().item()


@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (0.7, 0.3), (-2.0, 0.8), (0.1, 0.05)])
def test_density_integrates_to_sample_frequencies(mean, std):
    """The integral is 1 over all actions, and over an interval its probability under tanh(N)."""
    low, high = math.tanh(mean - 6 * std), math.tanh(mean + 6 * std)
    middle = math.tanh(mean)
    whole = sum(
        quad(density, *part, args=(mean, std))[0] for part in ((low, middle), (middle, high))
    )
    assert whole == pytest.approx(1, abs=1e-6)
    part = quad(density, math.tanh(mean - std), math.tanh(mean + 0.5 * std), args=(mean, std))[0]
    expected = Normal(0, 1).cdf(torch.tensor([0.5, -1.0], dtype=torch.float64))
    assert part == pytest.approx((expected[0] - expected[1]).item(), abs=1e-6)
    entropy = quad(
        lambda a: -density(a, mean, std) * math.log(density(a, mean, std)),
        low,
        high,
        points=[middle],
    )[0]
    noise = torch.randn(200_000, 1, generator=generator(), dtype=torch.float64)
    log_prob = squashed_log_prob(noise, torch.full_like(noise, math.log(std)), mean + std * noise)
    assert -log_prob.mean().item() == pytest.approx(entropy, abs=0.02)


def test_log_prob_sums_over_dimensions_and_stays_finite():
    noise = torch.tensor([[0.3, -1.0, 2.0]])
    log_std, raw = torch.tensor([[-1.0, 0.0, 0.5]]), torch.tensor([[0.2, -0.4, 40.0]])
    together = squashed_log_prob(noise, log_std, raw)
    each = [squashed_log_prob(noise[:, [i]], log_std[:, [i]], raw[:, [i]]) for i in range(3)]
    torch.testing.assert_close(together, sum(each))
    assert torch.isfinite(together).all()
    # log(1 - tanh(40)^2) = log 4 - 80, though 1 - tanh(40)^2 rounds to 0.
    gaussian = -2.0 - 0.5 - 0.5 * math.log(2 * math.pi)
    assert each[2].item() == pytest.approx(gaussian - math.log(4) + 80, rel=1e-6)


@pytest.mark.parametrize("critic", CRITICS)
def test_gradients_equal_the_textbook_computation(critic):
    agent = make_algorithm(
        SAC, critic, ent_coef=0.3, target_entropy=-0.5, action_penalty=0.2
    ).double()
    batch = double(random_batch())
    plain = copy.deepcopy(agent)
    losses = agent.compute_gradients(batch, generator())

    s, a, g, s2, r, end, *_ = batch
    noise = torch.randn(2, *a.shape, generator=generator(), dtype=torch.float64)

    def policy(state):
        mean, log_std = plain.actor.net(torch.cat([state, g], dim=-1)).chunk(2, dim=-1)
        return Normal(mean, log_std.exp())  # initially far from the bounds of log std

    a2 = torch.tanh(policy(s2).mean + policy(s2).stddev * noise[0]).detach()
    values = [q(s2, a2, g).detach() for q in (plain.critic_target, plain.twin_target)]
    target = (r + 0.98 * torch.minimum(*values) * ~end).clamp(-50, 0)  # no entropy term
    critic_loss = F.mse_loss(plain.critic(s, a, g), target)
    twin_loss = F.mse_loss(plain.twin(s, a, g), target)

    action = torch.tanh(policy(s).mean + policy(s).stddev * noise[1])
    squashed = TransformedDistribution(policy(s), [TanhTransform()])
    log_prob = squashed.log_prob(action).sum(dim=-1)
    q = torch.minimum(plain.critic(s, action, g), plain.twin(s, action, g))
    alpha = plain.log_temperature.exp().item()
    assert alpha == pytest.approx(0.3)
    policy_loss = (alpha * log_prob - q).mean() + 0.2 * action.pow(2).mean()
    # d/d log alpha of -alpha (log pi + target entropy), with 3 actions x -0.5.
    slope = -0.3 * (log_prob.mean() - 1.5)

    expected = [critic_loss + twin_loss, policy_loss, plain.critic(s, a, g).mean()]
    expected += [-log_prob.mean(), torch.tensor(0.3)]
    assert losses.tolist() == pytest.approx([x.item() for x in expected], rel=1e-6)
    assert_gradients(agent.critic, plain.critic, critic_loss)
    assert_gradients(agent.twin, plain.twin, twin_loss)
    assert_gradients(agent.actor, plain.actor, policy_loss)
    assert agent.log_temperature.grad.item() == pytest.approx(slope.item(), rel=1e-6)


def test_temperature_loss_by_hand():
    log_temperature = torch.tensor(math.log(2.0), requires_grad=True)
    log_prob = torch.tensor([1.0, 3.0])
    loss = temperature_loss(log_temperature, log_prob, -0.5)
    assert loss.item() == pytest.approx(-2 * (2 - 0.5))
    loss.backward()
    assert log_temperature.grad.item() == pytest.approx(-3.0)  # alpha rises: entropy -2 < -0.5


@pytest.mark.parametrize(("target_entropy", "rises"), [(0.69, True), (-20.0, False)])
def test_temperature_rises_below_the_target_entropy_and_falls_above(target_entropy, rises):
    agent = make_algorithm(SAC, target_entropy=target_entropy, ent_coef=0.5)
    noise = generator()
    rows = torch.stack([agent.update(random_batch(), n, noise) for n in range(1, 30)])
    temperature, entropy = (rows[:, SAC.METRICS.index(name)] for name in ("ent_coef", "entropy"))
    # Adam on log alpha, with the gradient alpha (entropy - target).
    log_alpha = torch.tensor(math.log(0.5), requires_grad=True)
    optimizer, expected = torch.optim.Adam([log_alpha], lr=1e-3), []
    for value in entropy:
        expected.append(log_alpha.exp().item())
        log_alpha.grad = log_alpha.detach().exp() * (value - 3 * target_entropy)
        optimizer.step()
    assert temperature.tolist() == pytest.approx(expected, rel=1e-5)
    assert (temperature.diff() > 0).all() == rises
    assert (temperature.diff() < 0).all() == (not rises)
    assert agent.temperature_optimizer.steps[0] == 29


def test_value_contains_no_entropy():
    """Targets and critic gradients do not depend on the entropy coefficient."""
    targets, gradients = [], []
    for ent_coef in (1e-6, 1e6):
        agent, batch = make_algorithm(SAC, ent_coef=ent_coef), random_batch()
        agent.compute_gradients(batch, generator())
        gradients.append([w.grad.clone() for w in agent.critic.parameters()])
        with torch.no_grad():
            targets.append(agent.target(batch, batch.action))
    assert torch.equal(*targets)
    assert all(torch.equal(*pair) for pair in zip(*gradients, strict=True))
    assert targets[0].max() <= 0
    assert targets[0].min() >= -50


def test_explorer_samples_the_policy_and_act_returns_the_mean():
    agent, n = make_algorithm(SAC), 20_000
    with torch.no_grad():
        for weight in agent.actor.parameters():
            weight.zero_()
        agent.actor.net[-1].bias[:] = torch.tensor([0.5, 0.0, -0.5, -1.0, -1.0, 30.0])
    state, goal = torch.zeros(n, DIMS.state), torch.zeros(n, DIMS.goal)
    explore = agent.explorer(2, n, generator())
    first, second = explore(state, goal), explore(state, goal)
    assert not torch.equal(first, second)
    assert torch.equal(agent.explorer(1, n, generator())(state, goal), first)
    raw = torch.atanh(first[:, :2].double())
    assert raw.mean(dim=0).tolist() == pytest.approx([0.5, 0.0], abs=0.02)
    assert raw.std(dim=0).tolist() == pytest.approx([math.exp(-1)] * 2, rel=0.02)
    assert (first[:, 2].abs() > 0.99).float().mean() > 0.5  # std is clamped to e^2
    mean = torch.tanh(torch.tensor([0.5, 0.0, -0.5]))
    torch.testing.assert_close(agent.act(state, goal)[7], mean)


def test_targets_move_after_every_update():
    agent = make_algorithm(SAC, tau=0.25)
    target = next(agent.twin_target.parameters())
    steps = [lambda n=n: agent.update(random_batch(), n, generator()) for n in range(1, 4)]
    assert changes(target, steps) == [True] * 3
    assert changes(target, [agent.end_cycle]) == [False]
    assert make_algorithm(SAC).settings.action_penalty == 0
