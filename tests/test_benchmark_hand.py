"""`python -m benchmarks.hand`: what a policy of the Hand does, and goals that no pose reaches."""

import math

import numpy as np
import pytest
import torch

from benchmarks.hand import apart, asked, fallen, hand_reward, outcome, unreachable
from mrn.config import Config
from mrn.envs import TASKS, find_task
from mrn.envs.custom import make_env
from mrn.envs.rewards import _with_z_of
from mrn.replay import Episodes
from mrn.training.agent import Agent

CPU = torch.device("cpu")


def euler(x: float, y: float, z: float) -> torch.Tensor:
    """Rx Ry Rz as a quaternion, by multiplying the three."""

    def times(p, q):
        w, v = p[0] * q[0] - p[1:] @ q[1:], p[0] * q[1:] + q[0] * p[1:]
        return torch.cat([w[None], v + torch.linalg.cross(p[1:], q[1:])])

    parts = [torch.zeros(4, dtype=torch.float64) for _ in range(3)]
    for axis, (part, angle) in enumerate(zip(parts, (x, y, z), strict=True)):
        part[0], part[1 + axis] = math.cos(angle / 2), math.sin(angle / 2)
    return times(times(parts[0], parts[1]), parts[2])


def pose(quaternion: torch.Tensor) -> torch.Tensor:
    return torch.cat([torch.tensor([1.0, 0.9, 0.15], dtype=torch.float64), quaternion])


# cos(x/2) cos(y/2) cos(z/2) - sin sin sin is -0.34 here: environments, whose goals have w >= 0,
# want the quaternion with the other sign, and Euler angles give this one.
ODD = pose(-euler(2.5, 1.0, 2.5))
EVEN = pose(euler(0.5, 1.0, 0.5))


def test_a_goal_of_the_pen_that_not_even_itself_reaches():
    reward = hand_reward("PenRotate")
    assert ODD[3] == pytest.approx(0.3445, abs=1e-4)
    assert unreachable(reward, torch.stack([ODD, EVEN])).tolist() == [True, False]
    env = make_env(TASKS["PenRotate"].shape.env_id)
    compute = env.unwrapped.compute_reward  # by its own word, too
    assert [compute(each.numpy(), each.numpy(), {}) for each in (ODD, EVEN)] == [-1, 0]
    env.close()


def test_nor_does_any_other_pose():
    angles = torch.cartesian_prod(*[torch.arange(-3.14, 3.14, 0.02, dtype=torch.float64)] * 2)
    x, y = angles[angles[:, 1].abs() < math.pi / 2].T / 2  # the third is taken from the goal
    half = torch.stack([x.cos() * y.cos(), x.sin() * y.cos(), x.cos() * y.sin(), x.sin() * y.sin()])
    poses = torch.cat([ODD[:3].expand(half.shape[1], 3), half.T], dim=1)
    near = poses[(_with_z_of(poses[:, 3:], EVEN[3:]) @ EVEN[3:]).argmax()]
    reward = hand_reward("PenRotate")
    assert reward(near, EVEN) == 0  # the grid is fine enough to find one
    assert reward(poses, ODD.expand_as(poses)).max() == -1


def test_angles_do_not_depend_on_a_quaternions_sign():
    reward = hand_reward("EggRotate")
    turned = pose(euler(0.4, 0.0, 0.0))
    flipped = torch.cat([turned[:3], -turned[3:]])
    start = pose(euler(0.0, 0.0, 0.0))
    assert reward.angle(flipped, start) == pytest.approx(2 * math.pi - 0.4)
    assert apart(reward, turned, start) == pytest.approx(0.4)
    assert apart(reward, flipped, start) == pytest.approx(0.4)


def test_fallen_is_below_where_it_began():
    heights = torch.tensor([[0.15, 0.02, 0.14], [0.15, 0.15, -0.19], [0.15, 0.12, 0.11]])
    assert fallen(heights).tolist() == [False, True, False]


def test_outcomes_of_an_episode():
    played = Episodes.allocate(find_task("EggRotate").shape, 2)
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


def test_the_critic_is_asked_of_its_own_and_of_another_goals_action():
    agent = Agent(Config.of("EggRotate", seed=3), find_task("EggRotate").shape, CPU)
    played = Episodes.allocate(agent.shape, 2)
    rng = np.random.default_rng(0)
    played.state[:], played.goal[:] = (
        rng.normal(size=each.shape) for each in (played.state, played.goal)
    )
    squares, slope, choice = asked(agent, played)
    assert squares.shape == slope.shape == choice.shape == (8,)
    state, goal = agent.policy.inputs(
        *(torch.from_numpy(each[0, :1]) for each in (played.state, played.goal))
    )
    action, other = (
        agent.learner.act(state, agent.normalizer.goal(torch.from_numpy(played.goal[i, :1])))
        for i in (0, 1)
    )
    assert squares[0] == pytest.approx(float(action.square().mean()))
    critic = agent.learner.critic.double()
    state, goal, action, other = (each.double() for each in (state, goal, action, other))
    with torch.no_grad():
        q = critic(state, action, goal)
        assert float(choice[0]) == pytest.approx(float(q - critic(state, other, goal)), abs=1e-5)
        shifts = 1e-6 * torch.eye(action.shape[1], dtype=torch.float64)
        slopes = [(critic(state, action + shift, goal) - q) / 1e-6 for shift in shifts]
    assert float(slope[0]) == pytest.approx(float(torch.cat(slopes).norm()), rel=1e-3)
