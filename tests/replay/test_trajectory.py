"""Trajectory data: goals and states of the same episode, their distributions, normalization."""

import pytest
import torch
from scipy.stats import chisquare

from mrn.batch import TrajectorySampling
from mrn.replay import Hindsight, Normalizer
from mrn.utils.errors import UserError
from tests.replay.helpers import SPEC, episode_of, filled_buffer, same_batch, step_of
from tests.replay.test_goals import DRAWS, LENGTHS, REWARD, WRAPPED


def sample(discount=0.9, next_state_prob=0.2, waypoint_decay=0.7, size=DRAWS, **options):
    sampling = TrajectorySampling(discount, next_state_prob, waypoint_decay)
    buffer = filled_buffer(40, WRAPPED)
    hindsight = Hindsight(buffer, {"future": 0.8}, REWARD, trajectory=sampling, **options)
    return hindsight.sample(size, torch.Generator().manual_seed(0))


def test_trajectory_is_what_followed_in_the_same_episode_across_the_wrap():
    batch = sample()
    stamp, ahead = batch.state[:, 0], batch.trajectory
    assert torch.equal(ahead.achieved[:, 0], stamp + 1)
    assert torch.equal(ahead.future_goal[:, 0], stamp + ahead.future_steps)
    assert torch.equal(ahead.waypoint[:, 0], stamp + ahead.waypoint_steps)
    assert torch.equal(episode_of(ahead.future_goal[:, 0]), episode_of(stamp))
    assert (ahead.waypoint_steps >= 1).all()
    assert (ahead.waypoint_steps <= ahead.future_steps).all()
    assert ahead.future_steps.dtype == ahead.waypoint_steps.dtype == torch.float32
    assert set(episode_of(stamp).tolist()) == set(LENGTHS)


@pytest.mark.parametrize("decay", [0.0, 0.7, 0.95])
def test_steps_follow_their_distributions(decay):
    batch = sample(waypoint_decay=decay, size=4 * DRAWS)
    first = (episode_of(batch.state[:, 0]) == 6) & (step_of(batch.state[:, 0]) == 0)
    future = batch.trajectory.future_steps[first].long()
    waypoint = batch.trajectory.waypoint_steps[first].long()
    odds = torch.tensor([0.9**k for k in range(10)], dtype=torch.float64)
    counts = torch.bincount(future - 1, minlength=10)
    assert chisquare(counts, counts.sum() * odds / odds.sum()).pvalue > 1e-3
    for limit in (1, 3, 6):
        found = torch.bincount(waypoint[future == limit] - 1, minlength=limit)
        odds = torch.tensor([(1 - decay) * decay**k for k in range(limit)], dtype=torch.float64)
        odds[-1] = decay ** (limit - 1)  # the cap collects the rest
        odds *= 0.8
        odds[0] += 0.2
        expected = found.sum() * odds
        assert torch.equal(found > 0, expected > 0)
        if (expected > 0).sum() > 1:
            assert chisquare(found[expected > 0], expected[expected > 0]).pvalue > 1e-3


def test_waypoint_is_the_next_state_on_request():
    ahead = sample(next_state_prob=1.0, waypoint_decay=0.9, size=1000).trajectory
    assert (ahead.waypoint_steps == 1).all()


def test_waypoint_is_not_beyond_the_first_step_that_achieves_the_goal():
    """Steps 3, 4 and 5 achieve each other's goals, as if an agent stayed there."""

    def reward(achieved, goal):
        rest = [torch.where((step_of(x[:, 0]) >= 3) & (step_of(x[:, 0]) <= 5), 3, step_of(x[:, 0]))
                for x in (achieved, goal)]  # fmt: skip
        return -(rest[0] != rest[1]).float()

    sampling = TrajectorySampling(0.9, 0.2, 0.95)
    hindsight = Hindsight(filled_buffer(40, WRAPPED), {"future": 0.8}, reward, trajectory=sampling)
    batch = hindsight.sample(DRAWS, torch.Generator().manual_seed(0))
    start, ahead = step_of(batch.state[:, 0]), batch.trajectory
    goal = start + ahead.future_steps
    stays = (goal >= 3) & (goal <= 5)
    limit = torch.where(stays, (3 - start).clamp(min=1), ahead.future_steps)
    assert (ahead.waypoint_steps <= limit).all()
    for chosen in (stays & (start == 0), ~stays & (start == 0), stays & (start == 3)):
        assert (ahead.waypoint_steps == limit)[chosen].any()
    assert set(goal[stays].tolist()) == {3, 4, 5}  # the goals themselves are as sampled
    assert torch.equal(ahead.future_goal[:, 0], batch.state[:, 0] + ahead.future_steps)


def test_trajectory_changes_nothing_else():
    plain = Hindsight(filled_buffer(40, WRAPPED), {"future": 0.8}, REWARD, 1, True)
    generator = torch.Generator().manual_seed(0)
    before = plain.sample(100, generator)
    both = sample(size=100, redraws=1, with_relabeled=True)
    assert before.trajectory is None
    assert same_batch(before, both._replace(trajectory=None))
    assert both.relabeled.trajectory is None
    assert torch.equal(
        both.trajectory.waypoint[:, 0], both.state[:, 0] + both.trajectory.waypoint_steps
    )


def test_normalizer_covers_goals_and_states_of_the_trajectory():
    normalizer = Normalizer(SPEC)
    normalizer.state.update(torch.randn(50, 2) * 4000 + 100)
    normalizer.goal.update(torch.randn(50, 1) * 5000)
    batch = sample(size=100, with_relabeled=True)
    raw, found = batch.trajectory, normalizer(batch).trajectory
    assert torch.equal(found.achieved, normalizer.goal(raw.achieved))
    assert torch.equal(found.future_goal, normalizer.goal(raw.future_goal))
    assert torch.equal(found.waypoint, normalizer.state(raw.waypoint))
    assert torch.equal(found.future_steps, raw.future_steps)
    assert torch.equal(found.waypoint_steps, raw.waypoint_steps)
    assert not torch.equal(found.waypoint, raw.waypoint)
    assert normalizer(batch._replace(trajectory=None)).trajectory is None


@pytest.mark.parametrize(
    "settings", [{"discount": 1.1}, {"discount": 0.9, "waypoint_decay": 1.0}, {"discount": -0.1}]
)
def test_sampling_checks_its_numbers(settings):
    with pytest.raises(UserError, match="must be"):
        TrajectorySampling(**settings)


def test_normalizer_scales_changes_of_achieved_goals():
    normalizer = Normalizer(SPEC)
    normalizer.goal.update(torch.tensor([[10.0], [14.0]]))  # mean 12, standard deviation 2
    batch = sample(size=4)._replace(achieved_change=torch.tensor([[0.0], [1.0], [-2.0], [100.0]]))
    assert normalizer(batch).achieved_change.flatten().tolist() == [0.0, 0.5, -1.0, 50.0]
