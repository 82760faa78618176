"""Rollouts: every episode starts at a reset and ends at its own end."""

import numpy as np
import pytest

from mrn.envs import TASKS, find_task, make_envs
from mrn.replay import Episodes
from mrn.training.rollout import collect_episodes
from mrn.utils.errors import RunError
from tests.training.helpers import straight

SPEC = TASKS["FetchReach"].spec


def forward(observation):
    """Move away from the start, so that the gripper never returns to its initial position."""
    return np.tile([1.0, 0.0, 0.0, 0.0], (len(observation.goal), 1))


@pytest.mark.parametrize("engine", ["envpool", "gymnasium"])
def test_no_dummy_transition_is_stored(engine):
    """After an episode both engines return a reset instead of a step; it must not be stored."""
    episodes = Episodes.allocate(SPEC, 3)
    rounds = []
    with make_envs(SPEC, 3, engine) as envs:
        for seed in (1, None, None):
            collect_episodes(envs, forward, episodes, seed)
            assert (episodes.length == SPEC.horizon).all()
            assert not episodes.terminated.any()
            rounds.append(Episodes(*(array.copy() for array in episodes)))
    start = rounds[0].achieved[0, 0]
    for played in rounds:
        assert np.allclose(played.achieved[:, 0], start, atol=1e-3)  # starts at a reset
        away = np.linalg.norm(played.achieved - start, axis=-1)  # (N, T + 1)
        assert (away[:, 2:] > 0.01).all()  # no other reset
        steps = np.linalg.norm(np.diff(played.achieved, axis=1), axis=-1)
        assert steps.max() < 0.05  # no jumps
        assert (played.goal == played.goal[:, :1]).all()
        assert (played.action[:, :-1] == np.float32([1, 0, 0, 0])).all()
    goals = np.concatenate([played.goal[:, 0] for played in rounds])
    assert len(np.unique(goals, axis=0)) == 9  # nine episodes, nine goals


def test_success_refers_to_the_state_after_the_action():
    episodes = Episodes.allocate(SPEC, 20)
    with make_envs(SPEC, 20) as envs:
        collect_episodes(envs, straight, episodes, seed=0)
    distance = np.linalg.norm(episodes.achieved[:, 1:] - episodes.goal[:, 1:], axis=-1)
    clear = np.abs(distance - 0.05) > 1e-5  # float32 precision
    assert np.array_equal(episodes.success[clear], (distance < 0.05)[clear])
    assert 0.5 < episodes.success.mean() < 1  # first on the way, then at the goal


@pytest.mark.parametrize(("value", "fits"), [(3e38, True), (-4e38, False), (1e300, False)])
def test_numbers_beyond_float32_are_rejected(value, fits, monkeypatch):
    """Float32 would turn it into infinity, and no checkpoint could store it."""
    task = find_task("tests.envs.custom_envs:Walk-v0")
    into = Episodes.allocate(task.spec, 2)
    with make_envs(task.spec, 2) as envs:
        original = envs.step

        def step(action):
            result = original(action)
            result.observation.state[1, 0] = value
            return result

        monkeypatch.setattr(envs, "step", step)
        if fits:
            played = collect_episodes(envs, lambda _: np.zeros((2, 2)), into, seed=0)
            assert (played.state[1, 1:, 0] == np.float32(value)).all()
        else:
            message = r"the observation of the environment is not finite \(environment 1, step 1\)"
            with pytest.raises(RunError, match=message):
                collect_episodes(envs, lambda _: np.zeros((2, 2)), into, seed=0)
