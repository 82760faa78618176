"""Relabelling: how often, with what, and what follows for the reward."""

import pytest
import torch
from scipy.stats import chisquare

from mrn.envs.rewards import FetchReward
from mrn.replay import Hindsight, ReplayBuffer
from tests.replay.helpers import (
    CPU,
    HORIZON,
    SHAPE,
    counting_episodes,
    episode_id,
    filled,
    step_of,
)

DRAWS = 100_000
REWARD = FetchReward(threshold=0.5)


def sample(
    goal_selection_strategy="future", probability=0.8, lengths=None, size=DRAWS, buffer_size=40
):
    buffer = filled(buffer_size, lengths or [[HORIZON] * 3, [HORIZON] * 3])  # wraps around once
    hindsight = Hindsight(goal_selection_strategy, probability, REWARD)
    return hindsight.sample(buffer, size, torch.Generator().manual_seed(0))


def test_the_share_of_relabelled_goals():
    batch = sample()
    share = (batch.goal[:, 0] >= 0).float().mean().item()  # original goals are negative
    assert share == pytest.approx(0.8, abs=0.006)
    original = batch.goal[:, 0] < 0
    assert torch.equal(batch.goal[original, 0], -episode_id(batch.state[original, 0]).float())


@pytest.mark.parametrize("goal_selection_strategy", ["future", "final", "episode"])
def test_no_goal_crosses_an_episode_or_the_wrap(goal_selection_strategy):
    lengths = [[HORIZON, 4, 7], [1, HORIZON, 3], [HORIZON, 2, HORIZON], [5, 9]]
    batch = sample(goal_selection_strategy, 1.0, lengths)
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


@pytest.mark.parametrize("goal_selection_strategy", ["future", "final", "episode"])
def test_steps_count_the_actions_to_a_goal_that_came_later(goal_selection_strategy):
    lengths = [[HORIZON, 4, 7], [1, HORIZON, 3], [HORIZON, 2, HORIZON], [5, 9]]
    batch = sample(goal_selection_strategy, 0.8, lengths)
    ahead = batch.goal[:, 0] - batch.state[:, 0]  # stamps count steps; original goals are negative
    later = (batch.goal[:, 0] >= 0) & (ahead > 0)
    assert torch.equal(batch.steps, torch.where(later, ahead, torch.inf))
    assert batch.steps.dtype == torch.float32
    assert batch.steps.min() == 1
    # `episode` reaches back, too; of those goals nobody knows how to get there.
    assert (later == (batch.goal[:, 0] >= 0)).all() == (goal_selection_strategy != "episode")


def test_steps_by_hand():
    """One episode of two transitions: from step 0 the goals of steps 1 and 2, from step 1 of 2."""
    batch = sample("future", 1.0, [[2]], size=1000)
    found = {(int(s), int(k)) for s, k in zip(batch.state[:, 0], batch.steps, strict=True)}
    assert found == {(0, 1), (0, 2), (1, 1)}
    assert torch.isinf(sample("future", 0.0, [[2]], size=10).steps).all()


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


def mostly_still(redraws: int, reward=REWARD):
    """Transitions from 40 episodes, three of four of which end where they began."""
    buffer = ReplayBuffer(SHAPE, 20 * HORIZON, CPU, 10, reward)  # wraps around once
    for first in range(0, 40, 10):
        episodes = counting_episodes(first, [HORIZON, 7] * 5)
        for i in range(10):
            if (first + i) % 4 < 3:
                end = episodes.length[i]
                episodes.achieved[i, end] = episodes.achieved[i, 0]
        buffer.add(episodes)
    hindsight = Hindsight("future", 0.8, REWARD, redraws)
    return buffer, hindsight.sample(buffer, DRAWS, torch.Generator().manual_seed(0))


def test_transitions_of_episodes_in_which_nothing_moved_are_drawn_again():
    buffer, plain = mostly_still(0)
    stored = buffer.state[buffer.newest(len(buffer)), 0]
    moved = episode_id(stored) % 4 == 3
    assert torch.equal(buffer.moved[buffer.newest(len(buffer)).long()], moved)
    share = moved.float().mean().item()
    assert 0.1 < share < 0.4
    for redraws in (0, 1, 4):
        batch = mostly_still(redraws)[1]
        found = (episode_id(batch.state[:, 0]) % 4 == 3).float().mean().item()
        assert found == pytest.approx(1 - (1 - share) ** (redraws + 1), abs=0.006)
    # Without redraws the random numbers are those of a buffer that knows nothing of this.
    unknowing = mostly_still(0, reward=None)[1]
    assert all(torch.equal(a, b) for a, b in zip(plain, unknowing, strict=True))


def test_among_those_that_moved_and_those_that_did_not_all_are_equally_likely():
    buffer, batch = mostly_still(2)
    drawn = batch.state[:, 0]
    for wanted in (True, False):
        stored = buffer.state[buffer.newest(len(buffer)), 0]
        kind = stored[(episode_id(stored) % 4 == 3) == wanted]
        counts = torch.tensor([(drawn == stamp).sum() for stamp in kind])
        assert chisquare(counts).pvalue > 1e-3


def test_what_moved_is_found_again_in_the_rows_of_a_checkpoint():
    buffer, _ = mostly_still(1)
    again = ReplayBuffer(SHAPE, 20 * HORIZON, CPU, 10, REWARD)
    again.start_at(buffer.oldest, buffer.first)
    again.append(buffer.read(buffer.oldest))
    assert torch.equal(again.moved, buffer.moved)
    assert buffer.moved.any()
