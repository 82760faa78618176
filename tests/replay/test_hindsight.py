"""Relabelling: how often, with what, and what follows for the reward."""

import pytest
import torch
from scipy.stats import chisquare

from mrn.envs.rewards import FetchReward
from mrn.replay import Hindsight
from tests.replay.helpers import CPU, HORIZON, counting_episodes, episode_id, filled, step_of

DRAWS = 100_000
REWARD = FetchReward(threshold=0.5)


def sample(relabel="future", probability=0.8, lengths=None, size=DRAWS, capacity=40):
    buffer = filled(capacity, lengths or [[HORIZON] * 3, [HORIZON] * 3])  # wraps around once
    hindsight = Hindsight(relabel, probability, REWARD)
    return hindsight.sample(buffer, size, torch.Generator().manual_seed(0))


def test_the_share_of_relabelled_goals():
    batch = sample()
    share = (batch.goal[:, 0] >= 0).float().mean().item()  # original goals are negative
    assert share == pytest.approx(0.8, abs=0.006)
    original = batch.goal[:, 0] < 0
    assert torch.equal(batch.goal[original, 0], -episode_id(batch.state[original, 0]).float())


@pytest.mark.parametrize("relabel", ["future", "final", "episode"])
def test_no_goal_crosses_an_episode_or_the_wrap(relabel):
    lengths = [[HORIZON, 4, 7], [1, HORIZON, 3], [HORIZON, 2, HORIZON], [5, 9]]
    batch = sample(relabel, 1.0, lengths)
    episode = episode_id(batch.state[:, 0])
    assert set(episode.tolist()) == {6, 7, 8, 9, 10}  # the ring has wrapped
    assert torch.equal(episode_id(batch.goal[:, 0]), episode)
    assert torch.equal(batch.next_state[:, 0], batch.state[:, 0] + 1)


def offsets(relabel: str, step: int) -> torch.Tensor:
    """How far ahead the goals of one step's transitions lie, counted, for 1 .. HORIZON."""
    batch = sample(relabel, 1.0, size=DRAWS * 4)
    at = step_of(batch.state[:, 0]) == step
    return torch.bincount(step_of(batch.goal[at, 0]), minlength=HORIZON + 1)


@pytest.mark.parametrize("step", [0, 4, HORIZON - 2])
def test_future_goals_are_equally_likely(step):
    counts = offsets("future", step)
    assert counts[: step + 1].sum() == 0  # only the future, the next state included
    assert chisquare(counts[step + 1 :]).pvalue > 1e-3


def test_the_last_transition_gets_the_last_achieved_goal():
    assert offsets("future", HORIZON - 1).nonzero().flatten().tolist() == [HORIZON]


def test_final_goals_are_the_last():
    assert offsets("final", 3).nonzero().flatten().tolist() == [HORIZON]


def test_episode_goals_are_any_achieved_after_an_action():
    counts = offsets("episode", 5)
    assert counts[0] == 0
    assert chisquare(counts[1:]).pvalue > 1e-3


def test_rewards_belong_to_the_new_goals():
    batch = sample()
    reached = (batch.next_state[:, 0] - batch.goal[:, 0]).abs() < 0.5
    assert torch.equal(batch.reward == 0, reached)
    assert torch.equal(batch.reward == -1, ~reached)
    # A transition at step t gets its own next state with probability 0.8 / (L - t).
    expected = sum(0.8 / (HORIZON - t) for t in range(HORIZON)) / HORIZON
    assert reached.float().mean().item() == pytest.approx(expected, abs=0.006)


def test_termination_follows_the_transition():
    buffer = filled(100, [[HORIZON]])
    buffer.add(counting_episodes(1, [4, 6], terminated=[True, False]))
    batch = Hindsight("future", 0.8, REWARD).sample(buffer, 5000, torch.Generator())
    stamp = batch.state[:, 0]
    assert torch.equal(batch.terminated, stamp == 1003)
    assert batch.terminated.any()


def test_newest_takes_each_transition_once():
    buffer = filled(40, [[HORIZON] * 3])
    buffer.add(counting_episodes(3, [4, HORIZON]))
    batch = Hindsight("future", 0.8, REWARD).newest(buffer, 14, torch.Generator())
    expected = [3000 + t for t in range(4)] + [4000 + t for t in range(HORIZON)]
    assert batch.state[:, 0].tolist() == expected


def test_the_same_generator_gives_the_same_batch():
    first, second = sample(size=100), sample(size=100)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert first.state.device == CPU
