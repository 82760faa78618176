"""Goals of the user's choice: in an environment of the user's, and in evaluations."""

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
    """Walks to the goal, at most 1 to the side and 4 ahead at a time; never back."""

    def forward(self, state, goal):
        way = goal - state
        return torch.stack([way[:, 0], way[:, 1] / 2 - 1], dim=1).clamp(-1, 1)


class StraightArm(nn.Module):
    """Moves the gripper, the first three values of FetchReach's state, to the goal."""

    def forward(self, state, goal):
        return nn.functional.pad((goal - state[:, :3]) * 10, (0, 1)).clamp(-1, 1)


def agent_of(task: str, actor: nn.Module) -> mrn.Agent:
    """An agent with a policy of our own, which sees states and goals as they are."""
    agent = mrn.Agent(mrn.Config.of(task, hidden_dim=8), find_task(task).spec, torch.device("cpu"))
    agent.algorithm.actor = agent.policy.actor = actor
    return agent


@pytest.fixture(scope="module")
def walker():
    return agent_of(WALK, Straight())


@pytest.fixture
def env():
    with make_env(WALK) as env:
        yield env


def start(env, seed):
    return env.reset(seed=seed)[0]["achieved_goal"]


def test_a_goal_is_reached_when_it_can_be(walker, env):
    """Steps by hand: 1 to the side at a time, and within 0.5 of the goal is there."""
    x, y = start(env, 3)
    found = walker.reach(env, [x + 3.2, y], seed=3)
    assert (found.reached, found.steps) == (True, 3)
    assert np.allclose(found.observation["achieved_goal"], [x + 3, y])
    assert found == mrn.Reach(True, 3, {})  # how it went, wherever it ended
    # Behind: it cannot walk back, and an episode has 8 steps.
    assert walker.reach(env, [x, y - 2], seed=3) == mrn.Reach(False, 8, {})
    # Where it stands already.
    assert walker.reach(env, [x + 0.3, y], seed=3) == mrn.Reach(True, 0, {})
    assert walker.reach(env, [x + 3.2, y], seed=3, steps=2) == mrn.Reach(False, 2, {})


def test_goals_one_after_the_other_without_a_reset(walker, env):
    x, y = start(env, 5)
    first = walker.reach(env, [x + 2, y], seed=5)
    second = walker.reach(env, [x, y + 4], observation=first.observation)
    assert (first.steps, second.steps) == (2, 2)
    assert np.allclose(second.observation["achieved_goal"], [x, y + 4])
    # Behind, until the 8 steps of the episode are used up.
    third = walker.reach(env, [x, y], observation=second.observation)
    assert (third.reached, third.steps) == (False, 4)
    with pytest.raises(mrn.UserError, match="a seed is for a reset"):
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
def test_a_goal_of_the_wrong_size_is_refused(walker, env, goal, message):
    with pytest.raises(mrn.UserError, match=message):
        walker.reach(env, goal)
    with pytest.raises(mrn.UserError, match=message):
        walker.evaluate(2, goal=goal)


def test_a_goal_unlike_those_of_the_training_is_warned_of(env):
    agent = agent_of(WALK, Straight())
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
        (lambda: make_env("FetchReach-v4"), r"actions of shape \(2,\), the environment's have \(4"),
        (
            lambda: make_env("tests.envs.custom_envs:FailsAtReset-v0"),
            r"reset: KeyError.*custom_envs.py",
        ),
        (
            lambda: make_env("tests.envs.custom_envs:Raises-v0"),
            r"step: ZeroDivisionError.*custom_envs",
        ),
        (lambda: gym.vector.SyncVectorEnv([lambda: make_env(WALK)] * 2), "not a vector"),
        (object, "needs a Gymnasium environment, got object"),
    ],
)
def test_an_environment_that_does_not_fit_is_refused(walker, make, message):
    with pytest.raises(mrn.UserError, match=message):
        walker.reach(make(), [4.0, 4.0])


@pytest.mark.parametrize("engine", ["envpool", "gymnasium"])
def test_an_evaluation_towards_one_goal(engine):
    """The arm gets to a place within its reach from everywhere, and nowhere near one far away."""
    agent = agent_of("FetchReach", StraightArm())
    near = agent.evaluate(3, engine=engine, threads=1, goal=[1.25, 0.85, 0.6])
    assert (near.success, near.engine) == (1.0, engine)
    assert 0 < near.steps_to_success < 20
    assert agent.evaluate(3, engine=engine, threads=1, goal=(3.0, 0.0, 0.0)).success_any == 0


@pytest.mark.filterwarnings("default:.*unlike the goals")
def test_the_command(walker, tmp_path, monkeypatch, capsys):
    file = tmp_path / "walk.safetensors"
    monkeypatch.setattr(mrn, "load", lambda *_, **__: walker)
    file.touch()

    def run(*words):
        monkeypatch.setattr("sys.argv", ["mrn", "eval", str(file), "--episodes=4", *words])
        cli.main()
        return capsys.readouterr()

    # Starts lie in [-1, 1]: all get to the first goal in time, but none walks back to the second.
    figures = json.loads(run("--json", "--goal", "2,2").out)
    assert (figures["success_any"], figures["goal"]) == (1.0, [2, 2])
    assert json.loads(run("--json", "--goal=0,-3").out)["success_any"] == 0
    assert "goal                      2.0,2.0\n" in run("--goal", "2,2").out
    for words, message in ((["2"], "has 2 values, such as 0,0; got 1"), (["2,x"], "--goal")):
        with pytest.raises(SystemExit) as end:
            run("--goal", *words)
        assert end.value.code == 2
        told = capsys.readouterr()
        assert message in told.err + told.out
    assert "warning: value 1 of the goal, 7, is unlike" in run("--goal", "7,2").err
