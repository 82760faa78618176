"""Tests that finished environments are not simulated until the next episode."""

import numpy as np
import pytest

from mrn.envs import find_task, make_envs
from mrn.envs.custom import make_env
from mrn.envs.wrappers import FreezeWhenDone
from mrn.replay import Episodes
from mrn.training.rollout import collect_episodes

NAME = "tests.envs.custom_envs:EndsAtGoal-v0"


def walk(observation):
    """Move toward the goal with actions in [-1, 1]; the point cannot move down."""
    offset = (observation.goal - observation.achieved).clip([-1, 0], [1, 4])
    return np.stack([offset[:, 0], offset[:, 1] / 2 - 1], axis=1)


def test_frozen_environment_repeats_its_last_step_until_a_seeded_reset(monkeypatch):
    env = FreezeWhenDone(make_env(NAME))
    steps = []
    inner = env.unwrapped
    original = inner.step
    monkeypatch.setattr(inner, "step", lambda action: steps.append(action) or original(action))
    first, _ = env.reset(seed=0)
    inner.goal = inner.position + np.array([1.0, 0.0])
    observation, reward, terminated, truncated, _ = env.step(np.array([1.0, 0.0]))
    assert (reward, terminated, truncated) == (0, True, False)
    assert len(steps) == 1
    frozen, _ = env.reset()  # autoreset by the vector environment
    again = env.step(np.array([0.5, 0.5]))
    assert again[1:4] == (0, False, False)
    assert frozen is observation
    assert again[0] is observation
    assert len(steps) == 1
    restarted, _ = env.reset(seed=0)
    assert np.array_equal(restarted["observation"], first["observation"])
    env.step(np.array([0.0, 0.0]))
    assert len(steps) == 2


def test_unseeded_reset_during_an_episode_is_a_real_reset():
    env = FreezeWhenDone(make_env(NAME))
    first, _ = env.reset(seed=0)
    second, _ = env.reset()
    assert not np.array_equal(first["desired_goal"], second["desired_goal"])


@pytest.mark.parametrize("async_envs", [False, True])
def test_nothing_is_simulated_after_the_end_of_an_episode(async_envs):
    """After its episode, an environment stays in place until the next one starts."""
    task = find_task(NAME)
    into = Episodes.allocate(task.spec, 4)
    with make_envs(task.spec, 4, async_envs=async_envs) as envs:
        for number in range(2):
            played = collect_episodes(envs, walk, into, seed=2, episode=number)
            assert len(set(played.length)) > 1  # episodes of different lengths
            assert played.terminated.any()
            for i, end in enumerate(played.length):
                moved = np.abs(np.diff(played.achieved[i, : end + 1], axis=0)).max(axis=1) > 0
                assert moved[: end - 1].any() or end == 1
                after = played.achieved[i, end : played.length.max() + 1]
                assert (after == after[0]).all()
