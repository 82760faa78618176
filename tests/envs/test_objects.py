"""Environments passed to `mrn.train` as Python objects."""

import subprocess
import sys
from functools import partial

import gymnasium as gym
import pytest
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import TimeLimit

import mrn
from mrn.distributed import SINGLE_PROCESS
from mrn.envs import objects
from mrn.envs.objects import task_of_object
from mrn.training.setup import prepare_run
from tests.envs.custom_envs import Walk
from tests.training.helpers import metrics, same_weights, tiny_run

ID = "tests.envs.custom_envs:Walk-v0"


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """Forget the objects of earlier tests."""
    monkeypatch.setattr(objects, "_sources", {})


def walk():
    return TimeLimit(Walk(), 8)


SHARED = walk()


def test_factory_class_and_instance_train_like_the_id(tmp_path):
    """The id `Walk-v0` has 8 steps per episode, too."""
    by_id = tiny_run(tmp_path / "id", task=ID)
    for name, task, settings in (
        ("factory", walk, {}),
        ("class", Walk, {"env_kwargs": {"max_episode_steps": 8}}),
        ("instance", gym.make("Walk-v0", disable_env_checker=True), {}),
        ("workers", walk, {"async_envs": True}),
    ):
        objects._sources.clear()
        agent = tiny_run(tmp_path / name, task=task, **settings)
        assert same_weights(by_id, agent), name
        assert metrics(tmp_path / name) == metrics(tmp_path / "id"), name
        assert agent.evaluate(3, seed=1) == by_id.evaluate(3, seed=1)


@pytest.mark.parametrize(
    ("env", "name"),
    [
        (walk, "walk"),
        (Walk, "Walk"),
        (partial(Walk), "Walk"),
        (lambda: TimeLimit(Walk(), 3), "lambda"),
    ],
)
def test_names_are_those_of_the_functions(env, name):
    assert task_of_object(env) == f"object/{name}"


def test_interrupted_run_shows_how_to_resume_it(tmp_path):
    config = mrn.Config.of(task_of_object(walk))
    command = prepare_run(config, tmp_path, False, SINGLE_PROCESS).resume_command
    assert command == f"mrn.train(ENV, run_dir='{tmp_path}', resume=True)"


def test_registered_instance_is_its_id():
    """Also with a window, in which no parallel environment should draw."""
    assert task_of_object(gym.make("Walk-v0")) == "Walk-v0"
    for options in ({}, {"render_mode": "rgb_array"}):
        assert task_of_object(gym.make("FetchReach-v4", **options)) == "FetchReach-v4"
    assert task_of_object(gym.make("Walk-v0", max_episode_steps=3)) == "object/Walk"
    assert gym.make("object/Walk").spec.max_episode_steps == 3


class Scaled(gym.ObservationWrapper, RecordConstructorArgs):
    def __init__(self, env, scale):
        RecordConstructorArgs.__init__(self, scale=scale)
        super().__init__(env)
        self.scale = scale

    def observation(self, observation):
        return observation | {"observation": observation["observation"] * self.scale}


def test_instance_keeps_its_wrappers():
    name = task_of_object(Scaled(gym.make("Walk-v0"), 3.0))
    copy, plain = gym.make(name), gym.make("Walk-v0")
    observation, expected = copy.reset(seed=0)[0], plain.reset(seed=0)[0]
    assert observation["observation"] == pytest.approx(3 * expected["observation"])


class Unrecorded(gym.Wrapper):
    pass


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (Walk(), "Walk was not created by gymnasium.make.*pass a function"),
        (Unrecorded(Walk()), "Walk was not created by gymnasium.make"),
        (Unrecorded(gym.make(ID)), "wrapper Unrecorded of Walk-v0 cannot be created again"),
        (3, "a name, a Gymnasium environment, or a function that creates one, got int"),
        (None, "got NoneType"),
        (lambda: None, "must return a gymnasium.Env, got NoneType"),
        (lambda: SHARED, "must create a new one at each call"),
        (Walk, "it has no max_episode_steps"),
        (lambda: 1 / 0, "cannot make environment 'object/lambda': ZeroDivisionError"),
    ],
)
def test_unusable_objects_are_rejected(tmp_path, env, message):
    with pytest.raises(mrn.UserError, match=message):
        tiny_run(tmp_path / "run", task=env)
    assert not (tmp_path / "run").exists()


def test_another_environment_of_the_same_name_warns():
    task_of_object(walk)
    task_of_object(walk)  # the same one
    other = partial(walk)
    with pytest.warns(UserWarning, match="object/walk now refers to the environment passed last"):
        task_of_object(other)


def test_another_process_needs_the_object_again(tmp_path):
    run = tmp_path / "run"
    tiny_run(run, task=walk, epochs=1)
    code = f"""
import numpy as np, mrn
from tests.envs.test_objects import walk
from tests.training.helpers import TINY

zeros = {{"observation": np.zeros(2), "desired_goal": np.zeros(2)}}
agent = mrn.load({str(run)!r})
action, _ = agent.predict(zeros)  # a policy does not need its environment
try:
    agent.evaluate(2)
except mrn.UserError as error:
    assert "mrn.load(RUN, env=ENV)" in str(error), error
agent = mrn.load({str(run)!r}, env=walk)
assert (agent.predict(zeros)[0] == action).all()
agent.evaluate(2)
longer = TINY | {{"epochs": 2}}
mrn.train(walk, run_dir={str(run)!r}, resume=True, progress=False, **longer)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    straight = tiny_run(tmp_path / "straight", task=walk)
    assert same_weights(mrn.load(run), straight)
    assert metrics(run) == metrics(tmp_path / "straight")


def test_stored_arguments_need_consent(tmp_path):
    tiny_run(tmp_path, task=Walk, env_kwargs={"max_episode_steps": 8}, epochs=1)
    with pytest.raises(mrn.UserError, match="uses env_kwargs.*trust_code=True"):
        mrn.load(tmp_path, env=Walk)
    agent = mrn.load(tmp_path, env=Walk, trust_code=True)
    assert agent.evaluate(2).episodes == 2
    assert len(metrics(agent.learn(1, progress=False).run_dir)) == 2


def test_env_is_only_for_objects(tmp_path):
    tiny_run(tmp_path, task=ID, epochs=1)
    with pytest.raises(mrn.UserError, match="trained on .*Walk-v0, a name: remove env"):
        mrn.load(tmp_path, env=walk)
