"""Mixtures of goal strategies: frequencies, distributions, rewards, steps and terminations."""

import pytest
import torch
from scipy.stats import chisquare

from mrn.envs.rewards import FetchReward
from mrn.replay import Hindsight, ReplayBuffer
from mrn.replay.goals import geometric_steps
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
WRAPPED = [[HORIZON, 4, 7], [1, HORIZON, 3], [HORIZON, 2, HORIZON], [5, 9]]  # keeps 6 .. 10
LENGTHS = {6: HORIZON, 7: 2, 8: HORIZON, 9: 5, 10: 9}


def sample(weights, buffer=None, size=DRAWS, **options):
    buffer = buffer or filled_buffer(40, WRAPPED)
    hindsight = Hindsight(buffer, weights, REWARD, **options)
    return hindsight.sample(size, torch.Generator().manual_seed(0))


def kinds(batch) -> dict[str, torch.Tensor]:
    """Return which transitions have their own goal, one of their episode, or another's."""
    goal, episode = batch.goal[:, 0], episode_of(batch.state[:, 0])
    desired, own = goal < 0, episode_of(goal) == episode
    return {
        "own": goal == -episode,
        "future": ~desired & own,
        "random": ~desired & ~own,
        "desired": desired & (goal != -episode),
    }


MIXTURES = [
    {"future": 0.4, "desired": 0.4},
    {"random": 0.3, "future": 0.2, "desired": 0.1},
    {"desired": 0.25, "random": 0.75},
    {"future": 0.0, "random": 0.5},
    {"desired": 1.0},
]


@pytest.mark.parametrize("weights", MIXTURES)
@pytest.mark.parametrize("redraws", [0, 2])
def test_strategies_are_drawn_with_their_weights(weights, redraws):
    expected = weights | {"own": 1 - sum(weights.values())}
    counts = {
        name: int(mask.sum()) for name, mask in kinds(sample(weights, redraws=redraws)).items()
    }
    assert sum(counts.values()) == DRAWS
    drawn = [name for name in counts if expected.get(name)]
    assert all(counts[name] == 0 for name in counts if name not in drawn)
    found = chisquare([counts[n] for n in drawn], [DRAWS * expected[n] for n in drawn])
    assert len(drawn) == 1 or found.pvalue > 1e-3


@pytest.mark.parametrize("weights", MIXTURES[:-1])
def test_relabeled_copy_follows_the_mixture_without_own_goals(weights):
    batch = sample(weights, with_relabeled=True)
    assert batch.relabeled is not None
    changed, copied = ~kinds(batch)["own"], kinds(batch.relabeled)
    assert torch.equal(batch.relabeled.goal[changed], batch.goal[changed])
    drawn = [name for name, weight in weights.items() if weight]
    # Also among the transitions that keep their goal in the batch.
    for rows in [changed, ~changed] if sum(weights.values()) < 1 else [changed]:
        counts = [int(copied[name][rows].sum()) for name in drawn]
        total = sum(counts)
        assert total == rows.sum()
        odds = [total * weights[name] / sum(weights.values()) for name in drawn]
        assert len(drawn) == 1 or chisquare(counts, odds).pvalue > 1e-3


@pytest.mark.parametrize("strategy", ["random", "desired"])
def test_goals_of_other_episodes_are_uniform_over_their_rows(strategy):
    batch = sample({strategy: 1.0}, size=4 * DRAWS)
    episode, goal = episode_of(batch.state[:, 0]), batch.goal[:, 0]
    for own in LENGTHS:
        found = goal[episode == own]
        if strategy == "desired":
            counts = {e: int((found == -e).sum()) for e in LENGTHS}
            assert counts.pop(own) == 0
            rows = [LENGTHS[e] + 1 for e in counts]  # longer episodes count more
            odds = [sum(counts.values()) * n / sum(rows) for n in rows]
            assert chisquare(list(counts.values()), odds).pvalue > 1e-3
        else:
            stamps = [1000 * e + t for e, n in LENGTHS.items() if e != own for t in range(n + 1)]
            by_stamp = torch.tensor([int((found == stamp).sum()) for stamp in stamps])
            assert by_stamp.sum() == len(found)
            assert chisquare(by_stamp).pvalue > 1e-4


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.9, 0.999, 1.0])
def test_geometric_goals_follow_the_truncated_distribution(discount):
    batch = sample({"geometric": 1.0}, discount=discount, size=4 * DRAWS)
    assert torch.equal(episode_of(batch.goal[:, 0]), episode_of(batch.state[:, 0]))
    ahead = (batch.goal - batch.state[:, :1])[:, 0].long()
    assert torch.equal(batch.steps_to_goal, ahead.float())
    remaining = torch.tensor([LENGTHS.get(e, 0) for e in range(11)])
    left = remaining[episode_of(batch.state[:, 0])] - step_of(batch.state[:, 0])
    for limit in (1, 4, HORIZON):
        counts = torch.bincount(ahead[left == limit] - 1, minlength=limit)
        odds = torch.tensor([discount**k for k in range(limit)], dtype=torch.float64)
        expected = counts.sum() * odds / odds.sum()
        assert len(counts) == limit
        assert torch.equal(counts > 0, expected > 0)
        if (expected > 0).sum() > 1:
            assert chisquare(counts[expected > 0], expected[expected > 0]).pvalue > 1e-3


def test_geometric_steps_stay_in_range_at_the_edges():
    edges = torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)
    for limit in (1, 2, 50, 10**6):
        for discount in (0.0, 1e-9, 0.5, 0.98, 1 - 1e-12, 1.0):
            steps = geometric_steps(
                edges, torch.tensor([limit, limit], dtype=torch.int32), discount
            )
            assert steps[0] == 1
            assert 1 <= steps[1] <= limit
            assert steps.dtype == torch.int32


@pytest.mark.parametrize("strategy", ["geometric", "random", "desired"])
def test_rewards_and_steps_match_the_new_goals(strategy):
    buffer = filled_buffer(100, [[HORIZON] * 3])
    buffer.goal[buffer.goal == -1] = 2003  # episode 1 desires what episode 2 achieves at step 3
    batch = sample({strategy: 0.7}, buffer)
    reached = (batch.next_state[:, 0] - batch.goal[:, 0]).abs() < 0.5
    assert torch.equal(batch.reward, reached.float() - 1)
    assert reached.any() == (strategy != "random")  # no two episodes visit the same state
    known = torch.isfinite(batch.steps_to_goal)
    assert known.float().mean().item() == pytest.approx(0.7 * (strategy == "geometric"), abs=0.01)
    assert torch.equal(batch.steps_to_goal[known], (batch.goal - batch.state)[known, 0])


@pytest.mark.parametrize("strategy", ["geometric", "random", "desired"])
@pytest.mark.parametrize("at_goal", [True, False])
def test_new_goals_terminate_only_if_reached_and_the_environment_ends_there(strategy, at_goal):
    buffer = filled_buffer(100, [[HORIZON]])
    episodes = counting_episodes(1, [4], terminated=[True])
    if at_goal:
        episodes.goal[0] = episodes.achieved[0, 4]
    buffer.add(episodes)
    again = counting_episodes(1, [2])  # visits the same states, and is truncated at another goal
    again.goal[:] = 1002
    buffer.add(again)
    batch = sample({strategy: 1.0}, buffer, 5000)
    reached = batch.reward == 0
    assert reached.any()
    assert torch.equal(batch.terminated, reached if at_goal else torch.zeros_like(reached))


@pytest.mark.parametrize("strategy", ["random", "desired"])
def test_a_single_episode_provides_its_own_goals(strategy):
    batch = sample({strategy: 1.0}, filled_buffer(40, [[7]]), 500)
    assert (batch.goal == (0 if strategy == "random" else -0.0)).all()
    assert torch.isinf(batch.steps_to_goal).all()
    buffer = ReplayBuffer(SPEC, HORIZON, CPU)  # has room for one episode
    for first in range(3):
        buffer.add(counting_episodes(first, [HORIZON]))
        batch = sample({strategy: 1.0}, buffer, 500)
        assert (batch.goal == (1000 * first if strategy == "random" else -first)).all()


@pytest.mark.parametrize("lengths", [[[HORIZON] * 3] * 7, [[1] * 3] * 20, [[3, HORIZON]] * 9])
def test_other_rows_are_never_of_the_same_episode_wherever_the_ring_starts(lengths):
    buffer = ReplayBuffer(SPEC, 40, CPU)
    for number, group in enumerate(lengths):
        buffer.add(counting_episodes(number * len(group), group))
        batch = sample({"random": 1.0}, buffer, 2000)
        mine, theirs = (episode_of(x[:, 0]) for x in (batch.state, batch.goal))
        assert (mine != theirs).all()
        kept = set(episode_of(buffer.state[buffer.newest(len(buffer)), 0]).tolist())
        assert set(theirs.tolist()) == kept
        place = buffer.newest(len(buffer))
        edge = torch.full(place.shape, 1 - 2**-53, dtype=torch.float64)
        for uniform in (torch.zeros_like(edge), edge):
            ends = buffer.since_start[place], buffer.until_end[place]
            other = buffer.other_rows(place, *ends, uniform)
            assert (buffer.first_rows(other) != buffer.first_rows(place)).all()


def test_mixture_draws_no_more_random_numbers_than_a_plain_strategy():
    states = []
    for weights in ({"future": 0.8}, {"future": 0.4, "geometric": 0.2, "desired": 0.4}):
        generator = torch.Generator().manual_seed(0)
        hindsight = Hindsight(filled_buffer(40, WRAPPED), weights, REWARD, 2, True, 0.9)
        hindsight.sample(100, generator)
        hindsight.newest(10, generator)
        states.append(generator.get_state())
    assert torch.equal(*states)


def test_mixture_of_one_strategy_equals_it():
    mixed = {"future": 0.3, "desired": 0.0}
    assert same_batch(sample({"future": 0.3}, size=1000), sample(mixed, size=1000))
