"""Chosen goals: in a given environment, and in evaluations."""

import json
import math
import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import nn

import mrn
from mrn import cli
from mrn.envs import find_task
from mrn.envs.custom import make_env

WALK = "tests.envs.custom_envs:Walk-v0"


class Straight(nn.Module):
    """Policy that walks to the goal: at most 1 sideways and 4 forward per step, never back."""

    def forward(self, state, goal):
        way = goal - state
        return torch.stack([way[:, 0], way[:, 1] / 2 - 1], dim=1).clamp(-1, 1)


class StraightArm(nn.Module):
    """Policy that moves the gripper, the first three values of FetchReach's state, to the goal."""

    def forward(self, state, goal):
        return nn.functional.pad((goal - state[:, :3]) * 10, (0, 1)).clamp(-1, 1)


def agent_with_policy(task: str, actor: nn.Module) -> mrn.Agent:
    """Return an agent with the given policy, which sees states and goals unnormalized."""
    agent = mrn.Agent(mrn.Config.of(task, hidden_dim=8), find_task(task).spec, torch.device("cpu"))
    agent.algorithm.actor = agent.policy.actor = actor
    return agent


@pytest.fixture(scope="module")
def walker():
    return agent_with_policy(WALK, Straight())


@pytest.fixture
def env():
    with make_env(WALK) as env:
        yield env


def start(env, seed):
    return env.reset(seed=seed)[0]["achieved_goal"]


def test_reachable_goal_is_reached(walker, env):
    """Worked out by hand: 1 sideways per step, and the goal is reached within 0.5."""
    x, y = start(env, 3)
    result = walker.reach(env, [x + 3.2, y], seed=3)
    assert (result.reached, result.steps) == (True, 3)
    assert np.allclose(result.observation["achieved_goal"], [x + 3, y])
    assert result == mrn.Reach(True, 3, {})  # equality ignores the observation
    # The goal is behind: the policy cannot walk back, and an episode has 8 steps.
    assert walker.reach(env, [x, y - 2], seed=3) == mrn.Reach(False, 8, {})
    # Already at the goal.
    assert walker.reach(env, [x + 0.3, y], seed=3) == mrn.Reach(True, 0, {})
    assert walker.reach(env, [x + 3.2, y], seed=3, steps=2) == mrn.Reach(False, 2, {})


@pytest.mark.parametrize(
    ("task", "threshold", "settings"),
    [
        ("FetchReachDense-v4", 0.05, {}),
        ("HandReachDense-v3", 0.01, {}),
        ("PointMaze_UMazeDense-v3", 0.45, {"reward_shift": -1.0}),
        ("FetchReach-v4", 0.05, {}),
        (WALK, 0.5, {}),
    ],
)
def test_success_uses_the_threshold_of_the_environment(task, threshold, settings):
    """A dense reward is 0 only exactly at the goal, so it cannot decide success."""
    task = find_task(task, **settings)
    goal = np.linspace(0.3, 0.6, task.spec.goal_dim)
    offset = np.eye(task.spec.goal_dim)[0] * threshold
    achieved = np.stack([goal, goal + 0.9 * offset, goal + 1.1 * offset])
    assert task.is_at_goal(achieved, goal).tolist() == [True, True, False]


def test_dense_goal_is_reached_and_evaluated():
    agent = agent_with_policy("FetchReachDense-v4", StraightArm())
    with make_env("FetchReachDense-v4") as env:
        goal = start(env, 0) + np.array([0.05, 0.05, 0.0])
        assert agent.reach(env, goal, seed=0).reached
    assert agent.evaluate(4, goal=goal).success == 1.0


@pytest.mark.parametrize("name", ["SmoothReward", "SmoothSuccess"])
def test_dense_custom_reward_needs_a_success_criterion(name):
    task = find_task(f"tests.envs.custom_envs:{name}-v0")
    goal = np.array([1.0, 2.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reached = task.is_at_goal(np.array([[1.0, 2.0], [1.0, 2.4]]), goal).tolist()
    if name == "SmoothReward":
        assert reached == [True, False]
        assert "add a method is_success(achieved_goal, desired_goal)" in str(caught[0].message)
    else:
        assert reached == [True, True]
        assert not caught


def test_successive_goals_without_a_reset(walker, env):
    x, y = start(env, 5)
    first = walker.reach(env, [x + 2, y], seed=5)
    second = walker.reach(env, [x, y + 4], observation=first.observation)
    assert (first.steps, second.steps) == (2, 2)
    assert np.allclose(second.observation["achieved_goal"], [x, y + 4])
    # The goal is behind: the remaining steps of the episode are used up.
    third = walker.reach(env, [x, y], observation=second.observation)
    assert (third.reached, third.steps) == (False, 4)
    with pytest.raises(mrn.UserError, match="seed and observation are mutually exclusive"):
        walker.reach(env, [0, 0], seed=1, observation=third.observation)


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ([1.0], r"a goal of .*Walk-v0 has 2 values, such as 0,0; got 1 values"),
        ([[1.0, 2.0]], r"got shape \(1, 2\)"),
        ([1.0, math.nan], "not finite"),
        ("north", "such as 0,0; got 'north'"),
    ],
)
def test_invalid_goal_is_rejected(walker, env, goal, message):
    with pytest.raises(mrn.UserError, match=message):
        walker.reach(env, goal)
    with pytest.raises(mrn.UserError, match=message):
        walker.evaluate(2, goal=goal)


def test_goal_outside_the_training_range_warns(env):
    agent = agent_with_policy(WALK, Straight())
    agent.normalizer.goal.update(torch.tensor([[-1.0, 3.0], [1.0, 3.0]]))  # 0 +- 1 and 3 +- 0.01
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent.reach(env, [4.9, 3.04], steps=1)
    with pytest.warns(UserWarning, match=r"value 1 of the goal, 5.5, .*5.5 standard.*-5 to 5"):
        agent.reach(env, [5.5, 3.0], steps=1)
    with pytest.warns(UserWarning, match=r"value 2 of the goal, 3.2.*20.0.*from 2.95 to 3.05"):
        agent.reach(env, [0.0, 3.2], steps=1)


class NoGoals(gym.Env):
    action_space = gym.spaces.Box(-1, 1, (2,))

    def reset(self, *, seed=None, options=None):
        return np.zeros(2), {}

    def step(self, action):
        raise AssertionError


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (NoGoals, "'achieved_goal' of 2 values"),
        (lambda: make_env("FetchReach-v4"), r"shape \(2,\), but the environment expects \(4"),
        (
            lambda: make_env("tests.envs.custom_envs:FailsAtReset-v0"),
            r"reset of the .* failed: KeyError.*custom_envs.py",
        ),
        (
            lambda: make_env("tests.envs.custom_envs:Raises-v0"),
            r"step of the .* failed: ZeroDivisionError.*custom_envs",
        ),
        (lambda: gym.vector.SyncVectorEnv([lambda: make_env(WALK)] * 2), "not a vector"),
        (object, "needs a Gymnasium environment, got object"),
    ],
)
def test_unsuitable_environment_is_rejected(walker, make, message):
    with pytest.raises(mrn.UserError, match=message):
        walker.reach(make(), [4.0, 4.0])


@pytest.mark.parametrize("engine", ["envpool", "gymnasium"])
def test_evaluation_with_one_goal(engine):
    """The arm always reaches a nearby goal, and never a distant one."""
    agent = agent_with_policy("FetchReach", StraightArm())
    near = agent.evaluate(3, engine=engine, threads=1, goal=[1.25, 0.85, 0.6])
    assert (near.success, near.engine) == (1.0, engine)
    assert 0 < near.steps_to_success < 20
    assert agent.evaluate(3, engine=engine, threads=1, goal=(3.0, 0.0, 0.0)).success_any == 0


@pytest.mark.filterwarnings("default:.*outside the training range")
def test_eval_command_with_a_goal(walker, tmp_path, monkeypatch, capsys):
    file = tmp_path / "walk.safetensors"
    monkeypatch.setattr(mrn, "load", lambda *_, **__: walker)
    file.touch()

    def run(*words):
        monkeypatch.setattr("sys.argv", ["mrn", "eval", str(file), "--episodes=4", *words])
        cli.main()
        return capsys.readouterr()

    # Episodes start in [-1, 1]: all reach the first goal, but none can walk back to the second.
    figures = json.loads(run("--json", "--goal", "2,2").out)
    assert (figures["success_any"], figures["goal"]) == (1.0, [2, 2])
    assert json.loads(run("--json", "--goal=0,-3").out)["success_any"] == 0
    assert "goal                      2.0,2.0\n" in run("--goal", "2,2").out
    for words, message in ((["2"], "has 2 values, such as 0,0; got 1"), (["2,x"], "--goal")):
        with pytest.raises(SystemExit) as end:
            run("--goal", *words)
        assert end.value.code == 2
        output = capsys.readouterr()
        assert message in output.err + output.out
    assert (
        "warning: value 1 of the goal, 7, is outside the training range" in run("--goal", "7,2").err
    )
