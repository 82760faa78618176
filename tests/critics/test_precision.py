"""Hidden layers in bfloat16: which products are rounded, and by how much Q and gradients change."""

import threading
from collections import Counter

import pytest
import torch
from torch import Tensor, nn

import mrn
from mrn.algorithms.networks import Actor, GaussianActor
from mrn.critics import CRITICS, Dims, make_critic
from mrn.critics.base import Linear, mlp
from mrn.critics.heads import Head
from mrn.critics.metric import MetricCritic
from mrn.envs import make_envs
from mrn.replay import Episodes
from mrn.training.rollout import collect_episodes
from mrn.utils.precision import hidden_bfloat16, is_hidden_bfloat16

STATE, ACTION, GOAL = 10, 4, 3
ROUNDING = 2.0**-8
"""Largest relative error of rounding to bfloat16, which has 8 significant bits."""


def inputs(size: int = 256) -> list[Tensor]:
    g = torch.Generator().manual_seed(1)
    return [torch.randn(size, dim, generator=g) for dim in (STATE, ACTION, GOAL)]


def seeded_critic(name: str) -> mrn.critics.Critic:
    torch.manual_seed(0)
    return make_critic(name, STATE, ACTION, GOAL)


def output_types(network: nn.Module, *arguments: Tensor) -> Counter:
    """Return how often layers returned each type in a forward pass, by whether they are hidden."""
    found: Counter = Counter()
    for layer in network.modules():
        if isinstance(layer, nn.Linear):
            layer.register_forward_hook(
                lambda layer, _, out: found.update([(getattr(layer, "hidden", False), out.dtype)])
            )
    network(*arguments)
    return found


def test_hidden_layer_rounds_its_operands_and_its_result_once():
    torch.manual_seed(0)
    layer, x = Linear(40, 30, hidden=True), torch.randn(20, 40)
    exact = layer(x)
    with hidden_bfloat16():
        rounded = layer(x)
    assert exact.dtype == layer.weight.dtype == torch.float32
    assert rounded.dtype == torch.bfloat16
    w, b, r = (v.bfloat16().double() for v in (layer.weight, layer.bias, x))
    expected = r @ w.t() + b
    # One rounding of the result; sums in between are exact to float32 or better.
    torch.testing.assert_close(rounded.double(), expected, rtol=1.01 * ROUNDING, atol=1e-6)
    assert not torch.allclose(expected, exact.double(), rtol=1e-4, atol=1e-4)


def test_other_layers_keep_float32():
    torch.manual_seed(0)
    layer, x = Linear(5, 3), torch.randn(4, 5)
    with hidden_bfloat16():
        assert torch.equal(layer(x), (x @ layer.weight.t()).add_(layer.bias))
        assert torch.equal(layer(x.bfloat16()), layer(x.bfloat16().float()))


HIDDEN = {"monolithic": 3, "bvn": 6, "uvfa": 6}
"""Hidden layers that a call of Q runs. Those of metric critics: two encoders with two each, and
that of the head's projection, twice."""


@pytest.mark.parametrize("name", CRITICS)
def test_hidden_layers_of_critics_are_bfloat16_and_outputs_float32(name):
    critic = seeded_critic(name)
    with hidden_bfloat16():
        assert critic(*inputs()).dtype == torch.float32
        found = output_types(critic, *inputs())
    assert {kind: count for (hidden, kind), count in found.items() if hidden} == {
        torch.bfloat16: HIDDEN.get(name, 6)
    }
    assert {kind for (hidden, kind) in found if not hidden} == {torch.float32}
    assert {weight.dtype for weight in critic.parameters()} == {torch.float32}


@pytest.mark.parametrize("kind", [Actor, GaussianActor])
def test_hidden_layers_of_actors_are_bfloat16_and_outputs_float32(kind):
    state, _, goal = inputs()
    with hidden_bfloat16():
        found = output_types(kind(Dims(STATE, ACTION, GOAL), 32), state, goal)
    assert found == {(True, torch.bfloat16): 3, (False, torch.float32): 1}


@pytest.mark.parametrize("name", CRITICS)
def test_gradients_are_close_to_those_in_float32(name):
    """The gradient of a loss turns by less than 0.05 rad and keeps its length within 2%."""
    critic, arguments = seeded_critic(name), inputs()

    def gradient() -> Tensor:
        critic.zero_grad()
        (critic(*arguments) + 3).square().mean().backward()
        parts = [weight.grad for weight in critic.parameters() if weight.grad is not None]
        assert {part.dtype for part in parts} == {torch.float32}
        return torch.cat([part.flatten() for part in parts])

    exact = gradient()
    with hidden_bfloat16():
        rounded = gradient()
    assert 1e-5 < (rounded - exact).norm() / exact.norm() < 0.05
    assert (rounded.norm() / exact.norm()).item() == pytest.approx(1, abs=0.02)


class TorchHead(Head):
    """Custom head made of PyTorch's own layers, which require float32 inputs."""

    is_quasimetric = True

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def project(self, x: Tensor) -> Tensor:
        return self.layer(x)

    def distance(self, from_: Tensor, to: Tensor) -> Tensor:
        return (from_ - to).abs().amax(dim=-1)


def test_custom_heads_get_float32():
    critic = MetricCritic(Dims(STATE, ACTION, GOAL), 8, TorchHead())
    with hidden_bfloat16():
        assert critic(*inputs()).dtype == torch.float32


def test_bfloat16_ends_with_its_block_and_stays_on_its_thread():
    seen = []
    with hidden_bfloat16():
        thread = threading.Thread(target=lambda: seen.append(is_hidden_bfloat16()))
        thread.start()
        thread.join()
        with hidden_bfloat16(False):
            seen.append(is_hidden_bfloat16())
        seen.append(is_hidden_bfloat16())
    assert seen == [False, False, True]
    assert not is_hidden_bfloat16()


def test_mlp_returns_the_type_of_its_input():
    net, x = mlp([3, 4, 4], activate_last=True).double(), torch.randn(2, 3).double()
    assert net(x).dtype == torch.float64
    with hidden_bfloat16():
        assert net(x).dtype == torch.float64


def test_rounding_barely_changes_q_of_a_trained_critic():
    """Q of the zoo's FetchPush, on its own episodes: the error is far below the spread of Q."""
    agent, count = mrn.load("zoo:FetchPush"), 4
    episodes = Episodes.allocate(agent.spec, count)
    explore = agent.explorer(agent.spec.horizon, count, torch.Generator().manual_seed(0))
    with make_envs(agent.spec, count) as envs:
        collect_episodes(envs, explore, episodes, seed=0)
    columns = (episodes.state, episodes.action, episodes.goal)
    state, action, goal = (torch.tensor(x[:, :-1]).flatten(0, 1) for x in columns)
    state, goal = agent.policy.inputs(state, goal)
    with torch.no_grad():
        q = agent.algorithm.critic(state, action, goal)
        with hidden_bfloat16():
            error = agent.algorithm.critic(state, action, goal) - q
    assert q.std() > 1
    assert 0 < error.abs().mean() < 0.01 * q.std()
    assert error.abs().max() < 0.1 * q.std()
    assert error.mean().abs() < 0.002 * q.std()
