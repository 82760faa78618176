"""Hindsight relabeling: how often, with which goals, and the resulting rewards."""

import pytest
import torch
from scipy.stats import chisquare

from mrn.envs.rewards import FetchReward
from mrn.replay import Hindsight, ReplayBuffer
from tests.replay.helpers import (
    CPU,
    HORIZON,
    SPEC,
    counting_episodes,
    episode_of,
    filled_buffer,
    same_batch,
    step_of,
)

DRAWS = 100_000
REWARD = FetchReward(threshold=0.5)


def sample(strategy="future", her_ratio=0.8, lengths=None, size=DRAWS, buffer_size=40):
    lengths = lengths or [[HORIZON] * 3, [HORIZON] * 3]  # wraps around once
    hindsight = Hindsight(filled_buffer(buffer_size, lengths), {strategy: her_ratio}, REWARD)
    return hindsight.sample(size, torch.Generator().manual_seed(0))


def test_fraction_of_relabeled_goals_is_her_ratio():
    batch = sample()
    fraction = (batch.goal[:, 0] >= 0).float().mean().item()  # original goals are negative
    assert fraction == pytest.approx(0.8, abs=0.006)
    original = batch.goal[:, 0] < 0
    assert torch.equal(batch.goal[original, 0], -episode_of(batch.state[original, 0]).float())


@pytest.mark.parametrize("strategy", ["future", "final", "episode"])
def test_goals_come_from_the_same_episode_across_the_wrap(strategy):
    lengths = [[HORIZON, 4, 7], [1, HORIZON, 3], [HORIZON, 2, HORIZON], [5, 9]]
    batch = sample(strategy, 1.0, lengths)
    episode = episode_of(batch.state[:, 0])
    assert set(episode.tolist()) == {6, 7, 8, 9, 10}  # the ring has wrapped
    assert torch.equal(episode_of(batch.goal[:, 0]), episode)
    assert torch.equal(batch.next_state[:, 0], batch.state[:, 0] + 1)


def count_goal_steps(strategy: str, step: int) -> torch.Tensor:
    """Count, for transitions at one step, at which steps 0 .. HORIZON their goals were achieved."""
    batch = sample(strategy, 1.0, size=DRAWS * 4)
    at = step_of(batch.state[:, 0]) == step
    return torch.bincount(step_of(batch.goal[at, 0]), minlength=HORIZON + 1)


@pytest.mark.parametrize("step", [0, 4, HORIZON - 2])
def test_future_goals_are_uniform_over_later_steps(step):
    counts = count_goal_steps("future", step)
    assert counts[: step + 1].sum() == 0  # only the future, including the next state
    assert chisquare(counts[step + 1 :]).pvalue > 1e-3


def test_last_transition_gets_the_last_achieved_goal():
    assert count_goal_steps("future", HORIZON - 1).nonzero().flatten().tolist() == [HORIZON]


def test_final_goals_are_achieved_at_the_last_step():
    assert count_goal_steps("final", 3).nonzero().flatten().tolist() == [HORIZON]


def test_episode_goals_are_uniform_over_all_steps_but_the_first():
    counts = count_goal_steps("episode", 5)
    assert counts[0] == 0
    assert chisquare(counts[1:]).pvalue > 1e-3


def test_rewards_are_recomputed_for_the_new_goals():
    batch = sample()
    reached = (batch.next_state[:, 0] - batch.goal[:, 0]).abs() < 0.5
    assert torch.equal(batch.reward == 0, reached)
    assert torch.equal(batch.reward == -1, ~reached)
    # A transition at step t gets its own next state with probability 0.8 / (L - t).
    expected = sum(0.8 / (HORIZON - t) for t in range(HORIZON)) / HORIZON
    assert reached.float().mean().item() == pytest.approx(expected, abs=0.006)


@pytest.mark.parametrize("strategy", ["future", "final", "episode"])
def test_steps_to_goal_are_finite_for_goals_achieved_later(strategy):
    lengths = [[HORIZON, 4, 7], [1, HORIZON, 3], [HORIZON, 2, HORIZON], [5, 9]]
    batch = sample(strategy, 0.8, lengths)
    ahead = batch.goal[:, 0] - batch.state[:, 0]  # stamps count steps; original goals are negative
    later = (batch.goal[:, 0] >= 0) & (ahead > 0)
    assert torch.equal(batch.steps_to_goal, torch.where(later, ahead, torch.inf))
    assert batch.steps_to_goal.dtype == torch.float32
    assert batch.steps_to_goal.min() == 1
    # `episode` also selects earlier goals, whose distance is unknown.
    assert (later == (batch.goal[:, 0] >= 0)).all() == (strategy != "episode")


def test_steps_to_goal_by_hand():
    """One episode of two transitions: from step 0 the goals of steps 1 and 2, from step 1 of 2."""
    batch = sample("future", 1.0, [[2]], size=1000)
    pairs = zip(batch.state[:, 0], batch.steps_to_goal, strict=True)
    assert {(int(s), int(k)) for s, k in pairs} == {(0, 1), (0, 2), (1, 1)}
    assert torch.isinf(sample("future", 0.0, [[2]], size=10).steps_to_goal).all()


def terminating_buffer(at_goal: bool) -> ReplayBuffer:
    """Return a truncated episode and one that terminated, at its own goal or elsewhere."""
    buffer = filled_buffer(100, [[HORIZON]])
    episodes = counting_episodes(1, [4], terminated=[True])
    if at_goal:
        episodes.goal[0] = episodes.achieved[0, 4]
    buffer.add(episodes)
    return buffer


@pytest.mark.parametrize("at_goal", [True, False])
def test_original_goals_keep_the_stored_termination(at_goal):
    hindsight = Hindsight(terminating_buffer(at_goal), {"future": 0.0}, REWARD)
    batch = hindsight.sample(5000, torch.Generator().manual_seed(0))
    assert torch.equal(batch.terminated, batch.state[:, 0] == 1003)
    assert batch.terminated.any()


@pytest.mark.parametrize("strategy", ["future", "final", "episode"])
@pytest.mark.parametrize("at_goal", [True, False])
def test_relabeled_goals_terminate_only_if_reached_and_the_environment_ends_there(
    strategy, at_goal
):
    hindsight = Hindsight(terminating_buffer(at_goal), {strategy: 1.0}, REWARD)
    batch = hindsight.sample(5000, torch.Generator().manual_seed(0))
    reached = batch.reward == 0
    assert reached.any()
    assert torch.equal(batch.terminated, reached if at_goal else torch.zeros_like(reached))
    # The last transition of the terminated episode, too, bootstraps for a goal it does not reach.
    missed = (batch.state[:, 0] == 1003) & ~reached
    assert missed.any() == (strategy == "episode")


def test_goal_termination_follows_the_stored_episodes():
    """It ends with the eviction of the last such episode, and a resumed run agrees."""
    buffer, generator = terminating_buffer(at_goal=True), torch.Generator().manual_seed(0)
    hindsight = Hindsight(buffer, {"final": 1.0}, REWARD)
    found = []
    for first in range(2, 13):
        buffer.add(counting_episodes(first, [HORIZON]))
        restored = ReplayBuffer(SPEC, 100, CPU)
        restored.start_at(buffer.oldest, buffer.first)
        restored.append(buffer.read(buffer.oldest))
        again = Hindsight(restored, {"final": 1.0}, REWARD).ends_at_goal()
        assert hindsight.sample(1000, generator).terminated.any() == again
        found.append(again)
    assert found == [True] * 9 + [False] * 2


def test_environment_that_goes_on_at_its_goals_does_not_end_there():
    """Another cause ended an episode that happened to be at its goal."""
    buffer, generator = terminating_buffer(at_goal=True), torch.Generator().manual_seed(0)
    hindsight, found = Hindsight(buffer, {"future": 1.0}, REWARD), []
    # At the last step, the limit may come first.
    for number, step in enumerate([HORIZON, HORIZON - 1, *[HORIZON] * 8], start=2):
        found.append(hindsight.sample(1000, generator).terminated.any().item())
        episodes = counting_episodes(number, [HORIZON])
        episodes.goal[0] = episodes.achieved[0, step]
        buffer.add(episodes)
        again = Hindsight(buffer, {"future": 1.0}, REWARD).ends_at_goal()  # as in a resumed run
        assert hindsight.ends_at_goal() == again
    assert found == [True, True] + [False] * 8


def test_termination_at_goals_outweighs_an_exception():
    buffer = terminating_buffer(at_goal=True)
    episodes = counting_episodes(2, [*[2] * 11, HORIZON], terminated=[*[True] * 11, False])
    episodes.goal[:11] = episodes.achieved[:11, [2]]
    episodes.goal[11] = episodes.achieved[11, 5]  # goes on, for example due to rounding
    buffer.add(episodes)
    assert Hindsight(buffer, {"future": 1.0}, REWARD).ends_at_goal()


def test_relabeled_copy_has_the_same_transitions_all_relabeled():
    buffer = filled_buffer(40, [[HORIZON, 4, 7]])
    plain, both = (
        Hindsight(buffer, {"future": 0.8}, REWARD, with_relabeled=copy).sample(
            500, torch.Generator().manual_seed(0)
        )
        for copy in (False, True)
    )
    assert plain.relabeled is None
    assert same_batch(plain, both._replace(relabeled=None))
    copy = both.relabeled
    kept = torch.isinf(both.steps_to_goal)
    assert kept.any()
    assert torch.equal(copy.goal[~kept], both.goal[~kept])
    assert (copy.goal[:, 0] > copy.state[:, 0]).all()
    assert torch.equal(copy.steps_to_goal, copy.goal[:, 0] - copy.state[:, 0])
    assert torch.equal(copy.reward == 0, copy.steps_to_goal == 1)


def test_newest_returns_each_transition_once():
    buffer = filled_buffer(40, [[HORIZON] * 3])
    buffer.add(counting_episodes(3, [4, HORIZON]))
    batch = Hindsight(buffer, {"future": 0.8}, REWARD).newest(14, torch.Generator())
    expected = [3000 + t for t in range(4)] + [4000 + t for t in range(HORIZON)]
    assert batch.state[:, 0].tolist() == expected


def test_same_generator_gives_the_same_batch():
    first, second = sample(size=100), sample(size=100)
    assert same_batch(first, second)
    assert first.state.device == CPU


def sample_mostly_still(redraws: int):
    """Sample from 40 episodes, three of four of which end where they started.

    Lookups between additions check that the table of moved episodes keeps up with the buffer.
    """
    buffer = ReplayBuffer(SPEC, 20 * HORIZON, CPU, 10)  # wraps around once
    hindsight = Hindsight(buffer, {"future": 0.8}, REWARD, redraws)
    for first in range(0, 40, 10):
        episodes = counting_episodes(first, [HORIZON, 7] * 5)
        for i in range(10):
            if (first + i) % 4 < 3:
                end = episodes.length[i]
                episodes.achieved[i, end] = episodes.achieved[i, 0]
        buffer.add(episodes)
        if first != 20:  # the next lookup covers two additions
            hindsight.sample(1, torch.Generator())
    return buffer, hindsight, hindsight.sample(DRAWS, torch.Generator().manual_seed(0))


def test_redraws_favor_episodes_in_which_something_moved():
    buffer, _, plain = sample_mostly_still(0)
    rows = buffer.newest(len(buffer))
    moved = episode_of(buffer.state[rows, 0]) % 4 == 3
    fraction = moved.float().mean().item()
    assert 0.1 < fraction < 0.4
    for redraws in (0, 1, 4):
        _, hindsight, batch = sample_mostly_still(redraws)
        if redraws:
            assert torch.equal(hindsight.moved(rows), moved)
        found = (episode_of(batch.state[:, 0]) % 4 == 3).float().mean().item()
        assert found == pytest.approx(1 - (1 - fraction) ** (redraws + 1), abs=0.006)
    # Without redraws, no motion is tracked and no further random numbers are drawn.
    assert sample_mostly_still(0)[1].moved is None
    generator, uniform = torch.Generator().manual_seed(0), torch.Generator().manual_seed(0)
    Hindsight(buffer, {"future": 0.8}, REWARD).sample(DRAWS, generator)
    numbers = torch.rand(3, DRAWS, generator=uniform, dtype=torch.float64)
    assert torch.equal(generator.get_state(), uniform.get_state())
    assert torch.equal(plain.state, buffer.state[buffer.draw(numbers[0])])


def test_redraws_are_uniform_within_moved_and_still_episodes():
    buffer, _, batch = sample_mostly_still(2)
    drawn = batch.state[:, 0]
    for moved in (True, False):
        stored = buffer.state[buffer.newest(len(buffer)), 0]
        kind = stored[(episode_of(stored) % 4 == 3) == moved]
        counts = torch.tensor([(drawn == stamp).sum() for stamp in kind])
        assert chisquare(counts).pvalue > 1e-3


def test_moved_episodes_are_recovered_from_the_rows_of_a_checkpoint():
    buffer, hindsight, batch = sample_mostly_still(1)
    restored = ReplayBuffer(SPEC, 20 * HORIZON, CPU, 10)
    again = Hindsight(restored, {"future": 0.8}, REWARD, 1)
    restored.start_at(buffer.oldest, buffer.first)
    restored.append(buffer.read(buffer.oldest))
    rows = buffer.newest(len(buffer))
    assert torch.equal(again.moved(rows), hindsight.moved(rows))
    assert hindsight.moved(rows).any()
    assert not hindsight.moved(rows).all()
    resumed = again.sample(DRAWS, torch.Generator().manual_seed(0))
    assert same_batch(batch, resumed)
