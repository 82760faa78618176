"""Environments whose episode is over cost nothing until the next one begins."""

import numpy as np
import pytest

from mrn.envs import find_task, make_envs
from mrn.envs.custom import make_env
from mrn.envs.wrappers import FreezeWhenDone
from mrn.replay import Episodes
from mrn.training.rollout import collect_episodes

NAME = "tests.envs.custom_envs:EndsAtGoal-v0"


def walk(observation):
    """To the goal, by actions in [-1, 1] of a robot that cannot walk down."""
    way = (observation.goal - observation.achieved).clip([-1, 0], [1, 4])
    return np.stack([way[:, 0], way[:, 1] / 2 - 1], axis=1)


def test_at_rest_the_last_answer_is_given_again_until_a_seed(monkeypatch):
    env = FreezeWhenDone(make_env(NAME))
    steps = []
    inner = env.unwrapped
    played = inner.step
    monkeypatch.setattr(inner, "step", lambda action: steps.append(action) or played(action))
    first, _ = env.reset(seed=0)
    inner.goal = inner.position + np.array([1.0, 0.0])
    observation, reward, terminated, truncated, _ = env.step(np.array([1.0, 0.0]))
    assert (reward, terminated, truncated) == (0, True, False)
    assert len(steps) == 1
    shown, _ = env.reset()  # the vector's own, for an episode nobody reads
    again = env.step(np.array([0.5, 0.5]))
    assert again[1:4] == (0, False, False)
    assert shown is observation
    assert again[0] is observation
    assert len(steps) == 1
    awake, _ = env.reset(seed=0)
    assert np.array_equal(awake["observation"], first["observation"])
    env.step(np.array([0.0, 0.0]))
    assert len(steps) == 2


def test_a_reset_without_a_seed_is_one_while_an_episode_lasts():
    env = FreezeWhenDone(make_env(NAME))
    first, _ = env.reset(seed=0)
    second, _ = env.reset()
    assert not np.array_equal(first["desired_goal"], second["desired_goal"])


@pytest.mark.parametrize("async_envs", [False, True])
def test_only_steps_of_episodes_are_simulated(async_envs):
    """After the end of its own episode an environment shows the same place until the next."""
    task = find_task(NAME)
    into = Episodes.allocate(task.spec, 4)
    with make_envs(task.spec, 4, async_envs=async_envs) as envs:
        for number in range(2):
            played = collect_episodes(envs, walk, into, seed=2, episode=number)
            assert len(set(played.length)) > 1  # of different lengths
            assert played.terminated.any()
            for i, end in enumerate(played.length):
                moved = np.abs(np.diff(played.achieved[i, : end + 1], axis=0)).max(axis=1) > 0
                assert moved[: end - 1].any() or end == 1
                after = played.achieved[i, end : played.length.max() + 1]
                assert (after == after[0]).all()
