"""`python -m benchmarks.hand`: what policies of the Hand do, and goals that no pose reaches."""

import math

import numpy as np
import pytest
import torch

from benchmarks.hand import (
    apart,
    asked,
    axis,
    fallen,
    hand_reward,
    main,
    outcome,
    unreachable,
)
from mrn.agent import Agent
from mrn.config import Config
from mrn.envs import TASKS, find_task
from mrn.envs.custom import make_env
from mrn.replay import Episodes
from mrn.utils.errors import UserError

CPU = torch.device("cpu")


def euler(x: float, y: float, z: float) -> torch.Tensor:
    """Rx Ry Rz as a quaternion, by multiplying the three."""

    def times(p, q):
        w, v = p[0] * q[0] - p[1:] @ q[1:], p[0] * q[1:] + q[0] * p[1:]
        return torch.cat([w[None], v + torch.linalg.cross(p[1:], q[1:])])

    parts = [torch.zeros(4, dtype=torch.float64) for _ in range(3)]
    for place, (part, angle) in enumerate(zip(parts, (x, y, z), strict=True)):
        part[0], part[1 + place] = math.cos(angle / 2), math.sin(angle / 2)
    return times(times(parts[0], parts[1]), parts[2])


def pose(quaternion: torch.Tensor) -> torch.Tensor:
    return torch.cat([torch.tensor([1.0, 0.9, 0.15], dtype=torch.float64), quaternion])


# cos(x/2) cos(y/2) cos(z/2) - sin sin sin is -0.34 here: environments, whose goals have w >= 0,
# want the quaternion with the other sign, and Euler angles give this one.
ODD = pose(-euler(2.5, 1.0, 2.5))
EVEN = pose(euler(0.5, 1.0, 0.5))


# Across the edge of the angle x, at pi, its neighbours have the other sign.
NEAR_THE_EDGE = pose(-euler(3.1, 0.8, 2.5))


def test_a_goal_of_the_pen_that_not_even_itself_reaches():
    reward = hand_reward("PenRotate")
    assert ODD[3] == pytest.approx(0.3445, abs=1e-4)
    goals = torch.stack([ODD, EVEN, NEAR_THE_EDGE])
    assert reward(goals, goals).tolist() == [-1, 0, -1]
    assert unreachable(reward, goals).tolist() == [True, False, False]
    env = make_env(TASKS["PenRotate"].spec.env_id)
    compute = env.unwrapped.compute_reward  # by its own word, too
    assert [compute(each.numpy(), each.numpy(), {}) for each in goals] == [-1, 0, -1]
    env.close()


def test_nor_does_any_other_pose():
    x, y = (
        torch.cartesian_prod(
            torch.arange(-3.14, 3.14, 0.02, dtype=torch.float64),
            torch.arange(-1.57, 1.57, 0.02, dtype=torch.float64),
        ).T
        / 2
    )  # half of the angles; the third is taken from the goal
    half = torch.stack([x.cos() * y.cos(), x.sin() * y.cos(), x.cos() * y.sin(), x.sin() * y.sin()])
    poses = torch.cat([ODD[:3].expand(half.shape[1], 3), half.T], dim=1)
    reward = hand_reward("PenRotate")
    best = [
        reward(poses, goal.expand_as(poses)).max().item() for goal in (ODD, EVEN, NEAR_THE_EDGE)
    ]
    assert best == [-1, 0, 0]  # where there is one, the grid is fine enough to find it


def test_angles_do_not_depend_on_a_quaternions_sign():
    reward = hand_reward("EggRotate")
    turned = pose(euler(0.4, 0.0, 0.0))
    flipped = torch.cat([turned[:3], -turned[3:]])
    start = pose(euler(0.0, 0.0, 0.0))
    assert apart(reward, turned, start) == pytest.approx(0.4)
    assert apart(reward, flipped, start) == pytest.approx(0.4)


def test_of_the_pen_the_angle_is_that_between_its_axes():
    reward = hand_reward("PenRotate")
    start = pose(euler(0.3, 1.4, 0.2))
    spun = pose(euler(0.3, 1.4, 2.0))
    assert apart(reward, spun, start) == pytest.approx(0, abs=1e-6)
    # Over the top: y would be 1.8, and the angles of that rotation are x - pi, pi - 1.8, z - pi.
    tilted = pose(euler(0.3, 1.8, 0.2))
    assert apart(reward, tilted, start) == pytest.approx(0.4)
    # The axis z goes to (sin y, -sin x cos y, cos x cos y).
    expected = [math.sin(1.4), -math.sin(0.3) * math.cos(1.4), math.cos(0.3) * math.cos(1.4)]
    assert axis(start[3:]).tolist() == pytest.approx(expected)


def test_fallen_is_below_where_it_began():
    heights = torch.tensor([[0.15, 0.02, 0.14], [0.15, 0.15, -0.19], [0.15, 0.12, 0.11]])
    expected = [[False, True, False], [False, False, True], [False, False, False]]
    assert fallen(heights).tolist() == expected


def test_outcomes_of_an_episode():
    played = Episodes.allocate(find_task("EggRotate").spec, 2)
    quaternions = [euler(0.0, 0.0, 0.0), euler(0.0, 0.7, 0.0)]
    for t, quaternion in ((0, quaternions[0]), (-1, quaternions[1])):
        played.achieved[:, t] = pose(quaternion)
    played.achieved[1, -1, 2] = -0.19
    played.goal[:] = pose(euler(0.0, 1.0, 0.0))
    played.success[0, -1] = True
    falls, turned, first, last, success = outcome(hand_reward("EggRotate"), played)
    assert falls.tolist() == [False, True]
    assert success.tolist() == [True, False]
    for found, angle in ((turned, 0.7), (first, 1.0), (last, 0.3)):
        assert found.tolist() == pytest.approx([angle, angle], abs=1e-3)


def test_policy_and_critic_are_asked_of_the_own_goal_and_of_the_episode_before():
    agent = Agent(Config.of("EggRotate", seed=3), find_task("EggRotate").spec, CPU)
    played = Episodes.allocate(agent.spec, 3)
    rng = np.random.default_rng(0)
    for each in (played.state, played.goal):
        each[:] = rng.normal(size=each.shape)
    played.achieved[2, 30:, 2] = -0.2  # so that of the last one two states count, not four
    squares, change, slope, worth = asked(agent, played)
    assert squares.shape == change.shape == slope.shape == worth.shape == (10,)
    state = torch.from_numpy(played.state[1, :1])  # the fifth: four are of the first episode
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
        ([], "name the runs to look at"),
        (["zoo:FetchPush"], "FetchPush is no task in which the Hand turns something"),
        (["nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_looked_at_is_told_before_the_page_is_touched(runs, message, monkeypatch):
    written = []
    monkeypatch.setattr("benchmarks.hand.write_sections", lambda *what: written.append(what))
    with pytest.raises(UserError, match=message):
        main(runs)
    assert not written
