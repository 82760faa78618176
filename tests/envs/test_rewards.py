"""Tests of the rewards against those of the environments, row by row."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from mrn.envs import TASKS
from mrn.envs.custom import make_env
from mrn.envs.rewards import FetchReward, HandReward


def real_goals(env: gym.Env, resets: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return achieved and desired goals of real episodes with random actions."""
    env.action_space.seed(0)
    observations = []
    for seed in range(resets):
        observations.append(env.reset(seed=seed)[0])
        observations += [env.step(env.action_space.sample())[0] for _ in range(steps)]
    return tuple(
        np.stack([obs[k] for obs in observations]) for k in ("achieved_goal", "desired_goal")
    )


def perturb(desired: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return goals close to the desired ones, on both sides of the thresholds."""
    achieved = desired.copy()
    direction = rng.normal(size=(len(desired), 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    threshold = rng.choice([0.01, 0.05], (len(desired), 1))
    achieved[:, :3] += direction * threshold * rng.uniform(0.9, 1.1, (len(desired), 1))
    if desired.shape[1] == 7:
        angle = 0.1 * rng.uniform(0.5, 1.5, len(desired))
        axis = rng.normal(size=(len(desired), 3))
        axis /= np.linalg.norm(axis, axis=1, keepdims=True)
        turn = np.concatenate([np.cos(angle / 2)[:, None], np.sin(angle / 2)[:, None] * axis], 1)
        achieved[:, 3:] = quaternion_product(turn, desired[:, 3:])
        achieved[::5, 3:] *= -1  # the same rotation, which the environments treat as different
        achieved[1::3, :3] = desired[1::3, :3]  # only the rotation matters
    return achieved


def quaternion_product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    w1, v1, w2, v2 = p[:, :1], p[:, 1:], q[:, :1], q[:, 1:]
    scalar = w1 * w2 - (v1 * v2).sum(1, keepdims=True)
    return np.concatenate([scalar, w1 * v2 + w2 * v1 + np.cross(v1, v2)], axis=1)


@pytest.mark.parametrize("task", TASKS)
def test_rewards_equal_those_of_the_environments(task):
    env = make_env(TASKS[task].spec.env_id)
    rng = np.random.default_rng(0)
    achieved, desired = real_goals(env, resets=6, steps=4)
    close, targets = perturb(np.repeat(desired, 20, axis=0), rng), np.repeat(desired, 20, axis=0)
    achieved = np.concatenate([achieved, close, rng.permutation(achieved)])
    desired = np.concatenate([desired, targets, desired])
    compute = env.unwrapped.compute_reward
    expected = [compute(a.copy(), d.copy(), {}) for a, d in zip(achieved, desired, strict=True)]
    ours = TASKS[task].reward(torch.from_numpy(achieved), torch.from_numpy(desired))
    assert ours.tolist() == expected
    assert {0.0, -1.0} == set(expected)
    assert 0.1 < np.mean([r == 0 for r in expected]) < 0.9  # both outcomes occur often
    env.close()


def test_batched_pen_reward_is_correct_unlike_gymnasium_robotics():
    env = make_env(TASKS["PenRotate"].spec.env_id)
    rng = np.random.default_rng(1)
    desired = np.repeat(real_goals(env, 3, 0)[1], 40, axis=0)
    spin = np.repeat(rng.uniform(-np.pi, np.pi, (len(desired), 1)) / 2, 4, axis=1)
    about_z = np.concatenate(
        [np.cos(spin[:, :1]), np.zeros_like(spin[:, :2]), np.sin(spin[:, :1])], 1
    )
    achieved = desired.copy()  # the goal's rotation, then a turn about the pen's axis
    achieved[:, 3:] = quaternion_product(desired[:, 3:], about_z)
    compute = env.unwrapped.compute_reward
    by_row = np.array([compute(a.copy(), d, {}) for a, d in zip(achieved, desired, strict=True)])
    batched = compute(achieved.copy(), desired, {})
    ours = TASKS["PenRotate"].reward(torch.from_numpy(achieved), torch.from_numpy(desired))
    assert ours.tolist() == by_row.tolist()
    assert (by_row == 0).mean() > 0.4
    assert (batched == 0).mean() < 0.5 * (by_row == 0).mean()
    env.close()


def test_thresholds_by_hand():
    goal = torch.zeros(4, 3)
    offset = torch.tensor([[0.0, 0, 0], [0.03, 0.04, 0], [0.03, 0.0401, 0], [0, 0, 0.2]])
    assert FetchReward(threshold=0.05)(offset.double(), goal.double()).tolist() == [0, 0, -1, -1]
    pose = torch.tensor([[0.0, 0, 0, 1, 0, 0, 0]], dtype=torch.float64)
    angle = torch.tensor(0.099 / 2, dtype=torch.float64)
    turned = pose.clone()
    turned[0, 3], turned[0, 6] = angle.cos(), angle.sin()
    assert HandReward()(turned, pose).item() == 0
    assert HandReward(rotation_threshold=0.098)(turned, pose).item() == -1
    # q and -q are the same rotation, but differ here as in the environments.
    assert HandReward()(pose * torch.tensor([1, 1, 1, -1, -1, -1, -1]), pose).item() == -1
    moved = pose.clone()
    moved[0, 0] = 0.02
    assert HandReward()(moved, pose).item() == 0
    assert HandReward(position_threshold=0.01)(moved, pose).item() == -1


def test_float32_agrees_with_float64_away_from_the_threshold():
    env = make_env(TASKS["PenFull"].spec.env_id)
    desired = np.repeat(real_goals(env, 4, 0)[1], 100, axis=0)
    achieved = perturb(desired, np.random.default_rng(2))
    reward = TASKS["PenFull"].reward
    exact = reward(torch.from_numpy(achieved), torch.from_numpy(desired))
    single = reward(torch.from_numpy(achieved).float(), torch.from_numpy(desired).float())
    assert single.dtype == torch.float32
    assert (exact != single).double().mean() < 0.005
    env.close()
