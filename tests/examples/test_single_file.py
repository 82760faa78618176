"""The single-file version of the method: it learns, and its critic is the package's."""

import runpy

import gymnasium as gym
import numpy as np
import pytest
import torch

import mrn
from mrn.envs.custom import register_robotics
from mrn.utils.device import torch_threads
from tests.examples.helpers import EXAMPLES

DIMS = (10, 4, 3)  # state, action and goal of FetchReach


@pytest.fixture(scope="module")
def single_file():
    register_robotics()  # without the notice that importing Gymnasium-Robotics prints
    return runpy.run_path(str(EXAMPLES / "mrn_single_file.py"))


def train(single_file, **settings):
    with torch_threads(1), torch.random.fork_rng():
        return single_file["train"](single_file["Settings"](**settings))


def test_it_does_not_import_the_package():
    text = (EXAMPLES / "mrn_single_file.py").read_text()
    assert "import mrn" not in text
    assert "from mrn" not in text


def copy_weights(package, single):
    """Copy the weights of the package's critic, which computes phi and h in one product."""
    own = package.state_dict()
    weights = {name: value for name, value in own.items() if not name.startswith("head.")}
    for index, part in enumerate(("phi", "h")):
        for kind in ("weight", "bias"):
            weights[f"{part}.0.{kind}"] = own[f"head.hidden.{kind}"].chunk(2)[index]
            weights[f"{part}.2.{kind}"] = own[f"head.outputs.{index}.{kind}"]
    single.load_state_dict(weights)


def test_its_critic_has_the_values_and_gradients_of_the_package(single_file):
    generator = torch.Generator().manual_seed(0)
    package, single = mrn.make_critic("mrn", *DIMS), single_file["MRNCritic"](*DIMS, 176)
    copy_weights(package, single)
    inputs = [torch.randn(256, size, generator=generator) for size in DIMS]
    results = []
    for critic in (package, single):
        leaves = [each.clone().requires_grad_() for each in inputs]
        q = critic(*leaves)
        q.square().mean().backward()
        results.append([q, *(leaf.grad for leaf in leaves)])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(theirs, ours)
    assert results[0][0].max() < 0
    expected = package.head.outputs[1].weight.grad
    torch.testing.assert_close(single.h[2].weight.grad, expected)
    torch.testing.assert_close(single.phi[0].weight.grad, package.head.hidden.weight.grad[:176])


def test_goals_are_relabeled_with_later_ones_of_the_same_episode(single_file):
    def reward(achieved, goal, info):
        return -(achieved != goal).any(axis=-1).astype(float)

    replay = single_file["Replay"](4, 5, 2, 1, 1, reward)
    for episode in range(6):  # the first two are overwritten
        time = np.arange(6.0)[None, :, None]
        state = np.concatenate([np.full_like(time, episode), time], axis=-1)
        replay.add(state, 10 * episode + time, np.full((1, 5, 1), -1.0), np.zeros((1, 5, 1)))
    batch = replay.sample(4000, 0.8, np.random.default_rng(0))
    episode, t = batch["state"].T
    goal = batch["goal"][:, 0]
    relabeled = goal != -1
    assert set(episode) == {2, 3, 4, 5}
    assert relabeled.mean() == pytest.approx(0.8, abs=0.03)
    offset = (goal - 10 * episode - t)[relabeled]
    assert offset.min() == 1
    assert (offset <= 5 - t[relabeled]).all()
    first = offset[t[relabeled] == 0]
    assert [(first == k).mean() for k in range(1, 6)] == pytest.approx([0.2] * 5, abs=0.05)
    reached = batch["reward"].numpy() == 0
    assert (reached == (goal == 10 * episode + t + 1)).all()
    newest = replay.sample(100, 0.8, np.random.default_rng(0), newest=2)
    assert set(newest["state"][:, 0]) == {4, 5}


def test_it_trains_and_the_seed_determines_the_result(single_file, capsys):
    tiny = {"cycles": 2, "num_envs": 1, "gradient_steps": 3, "eval_episodes": 1, "batch_size": 32}
    runs = [train(single_file, warmup_episodes=1, seed=seed, **tiny) for seed in (1, 1, 2)]
    weights = [torch.cat([w.flatten() for w in critic.parameters()]) for _, _, critic in runs]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert "100 steps" in capsys.readouterr().out  # 2 cycles x 50


@pytest.mark.slow
def test_it_reaches(single_file):
    successes, actor, _ = train(single_file)
    assert successes[-1] >= 0.9
    env = gym.make("FetchReach-v4")
    assert env.action_space.shape == (actor.net[-1].out_features,)
