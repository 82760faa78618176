"""Analysis of Shadow Hand policies, and goals that no pose reaches."""

import math

import numpy as np
import pytest
import torch

from mrn.agent import Agent
from mrn.config import Config
from mrn.envs import TASKS, find_task
from mrn.envs.custom import make_env
from mrn.replay import Episodes
from mrn.utils.errors import UserError
from scripts.hand import (
    angle_between,
    episode_outcomes,
    hand_reward,
    is_dropped,
    main,
    probe,
    unreachable,
    z_axis,
)

CPU = torch.device("cpu")


def euler(x: float, y: float, z: float) -> torch.Tensor:
    """Return Rx Ry Rz as a quaternion, by multiplying the three."""

    def times(p, q):
        w, v = p[0] * q[0] - p[1:] @ q[1:], p[0] * q[1:] + q[0] * p[1:]
        return torch.cat([w[None], v + torch.linalg.cross(p[1:], q[1:])])

    parts = [torch.zeros(4, dtype=torch.float64) for _ in range(3)]
    for place, (part, angle) in enumerate(zip(parts, (x, y, z), strict=True)):
        part[0], part[1 + place] = math.cos(angle / 2), math.sin(angle / 2)
    return times(times(parts[0], parts[1]), parts[2])


def pose(quaternion: torch.Tensor) -> torch.Tensor:
    return torch.cat([torch.tensor([1.0, 0.9, 0.15], dtype=torch.float64), quaternion])


# cos(x/2) cos(y/2) cos(z/2) - sin sin sin is -0.34 here. Goals of the environments have w >= 0,
# that is the opposite sign of what the Euler angles give.
ODD = pose(-euler(2.5, 1.0, 2.5))
EVEN = pose(euler(0.5, 1.0, 0.5))


# Neighbors on the other side of x = pi have the opposite sign.
NEAR_THE_EDGE = pose(-euler(3.1, 0.8, 2.5))


def test_pen_goal_that_its_own_pose_does_not_reach():
    reward = hand_reward("PenRotate")
    assert ODD[3] == pytest.approx(0.3445, abs=1e-4)
    goals = torch.stack([ODD, EVEN, NEAR_THE_EDGE])
    assert reward(goals, goals).tolist() == [-1, 0, -1]
    assert unreachable(reward, goals).tolist() == [True, False, False]
    env = make_env(TASKS["PenRotate"].spec.env_id)
    compute = env.unwrapped.compute_reward  # the environment agrees
    assert [compute(each.numpy(), each.numpy(), {}) for each in goals] == [-1, 0, -1]
    env.close()


def test_pen_goal_that_no_pose_of_a_fine_grid_reaches():
    x, y = (
        torch.cartesian_prod(
            torch.arange(-3.14, 3.14, 0.02, dtype=torch.float64),
            torch.arange(-1.57, 1.57, 0.02, dtype=torch.float64),
        ).T
        / 2
    )  # half angles; the third angle is copied from the goal
    half = torch.stack([x.cos() * y.cos(), x.sin() * y.cos(), x.cos() * y.sin(), x.sin() * y.sin()])
    poses = torch.cat([ODD[:3].expand(half.shape[1], 3), half.T], dim=1)
    reward = hand_reward("PenRotate")
    best = [
        reward(poses, goal.expand_as(poses)).max().item() for goal in (ODD, EVEN, NEAR_THE_EDGE)
    ]
    assert best == [-1, 0, 0]  # the grid is fine enough for reachable goals


def test_angle_does_not_depend_on_the_sign_of_a_quaternion():
    reward = hand_reward("EggRotate")
    turned = pose(euler(0.4, 0.0, 0.0))
    flipped = torch.cat([turned[:3], -turned[3:]])
    start = pose(euler(0.0, 0.0, 0.0))
    assert angle_between(reward, turned, start) == pytest.approx(0.4)
    assert angle_between(reward, flipped, start) == pytest.approx(0.4)


def test_angle_of_the_pen_is_between_its_axes():
    reward = hand_reward("PenRotate")
    start = pose(euler(0.3, 1.4, 0.2))
    spun = pose(euler(0.3, 1.4, 2.0))
    assert angle_between(reward, spun, start) == pytest.approx(0, abs=1e-6)
    # Beyond the pole: y = 1.8 has the Euler angles x - pi, pi - 1.8, z - pi.
    tilted = pose(euler(0.3, 1.8, 0.2))
    assert angle_between(reward, tilted, start) == pytest.approx(0.4)
    # The z axis is rotated to (sin y, -sin x cos y, cos x cos y).
    expected = [math.sin(1.4), -math.sin(0.3) * math.cos(1.4), math.cos(0.3) * math.cos(1.4)]
    assert z_axis(start[3:]).tolist() == pytest.approx(expected)


def test_dropped_is_relative_to_the_initial_height():
    heights = torch.tensor([[0.15, 0.02, 0.14], [0.15, 0.15, -0.19], [0.15, 0.12, 0.11]])
    expected = [[False, True, False], [False, False, True], [False, False, False]]
    assert is_dropped(heights).tolist() == expected


def test_episode_outcomes():
    played = Episodes.allocate(find_task("EggRotate").spec, 2)
    quaternions = [euler(0.0, 0.0, 0.0), euler(0.0, 0.7, 0.0)]
    for t, quaternion in ((0, quaternions[0]), (-1, quaternions[1])):
        played.achieved[:, t] = pose(quaternion)
    played.achieved[1, -1, 2] = -0.19
    played.goal[:] = pose(euler(0.0, 1.0, 0.0))
    played.success[0, -1] = True
    falls, turned, first, last, success = episode_outcomes(hand_reward("EggRotate"), played)
    assert falls.tolist() == [False, True]
    assert success.tolist() == [True, False]
    for found, angle in ((turned, 0.7), (first, 1.0), (last, 0.3)):
        assert found.tolist() == pytest.approx([angle, angle], abs=1e-3)


def test_probe_compares_the_goal_with_that_of_the_previous_episode():
    agent = Agent(Config.of("EggRotate", seed=3), find_task("EggRotate").spec, CPU)
    played = Episodes.allocate(agent.spec, 3)
    rng = np.random.default_rng(0)
    for each in (played.state, played.goal):
        each[:] = rng.normal(size=each.shape)
    played.achieved[2, 30:, 2] = -0.2  # two states of the last episode count instead of four
    squares, change, slope, worth = probe(agent, played)
    assert squares.shape == change.shape == slope.shape == worth.shape == (10,)
    state = torch.from_numpy(
        played.state[1, :1]
    )  # the fifth probed state: the first episode has four
    goals = [agent.normalizer.goal(torch.from_numpy(played.goal[i, :1])) for i in (1, 0)]
    state = agent.normalizer.state(state)
    action, other = (agent.algorithm.act(state, goal) for goal in goals)
    assert squares[4] == pytest.approx(float(action.square().mean()))
    assert change[4] == pytest.approx(float((action - other).square().mean()))
    critic = agent.algorithm.critic.double()
    state, goal, action, other = (each.double() for each in (state, goals[0], action, other))
    with torch.no_grad():
        q = critic(state, action, goal)
        assert float(worth[4]) == pytest.approx(float(q - critic(state, other, goal)), abs=1e-5)
        shifts = 1e-6 * torch.eye(action.shape[1], dtype=torch.float64)
        slopes = [(critic(state, action + shift, goal) - q) / 1e-6 for shift in shifts]
    assert float(slope[4]) == pytest.approx(float(torch.cat(slopes).norm()), rel=1e-3)


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "give the runs to evaluate"),
        (["zoo:FetchPush"], "FetchPush is not a Shadow Hand task"),
        (["nowhere"], "nowhere"),
    ],
)
def test_errors_are_raised_before_anything_is_written(runs, message, monkeypatch):
    written = []
    monkeypatch.setattr("scripts.hand.write_table", lambda *what: written.append(what))
    with pytest.raises(UserError, match=message):
        main(runs)
    assert not written
