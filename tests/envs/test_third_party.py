"""Tests of third-party environments: training, resuming and evaluation."""

from pathlib import Path

import numpy as np
import pytest

import mrn
from mrn.envs import find_task
from mrn.envs.checks import check_env
from mrn.envs.custom import make_env
from tests.reliability.helpers import same_run
from tests.training.helpers import metrics, tiny_run

EXAMPLES = Path(__file__).parents[2] / "examples"
SHORT = {"max_episode_steps": 10}
ENVS = {
    "panda_gym:PandaReach-v3": {},
    "rebuild_on_reset:RebuiltPush-v0": {},  # PandaPush, rebuilt at every reset
    "highway_env:parking-v0": {},
    "PointMaze_UMaze-v3": {},
    "AntMaze_UMaze-v5": {"reward_shift": -1.0},
}
# With two cycles, the simulator of a resumed run has played fewer episodes than the whole run's.
SMALL = {"cycles": 2, "num_envs": 1, "gradient_steps": 2, "eval_episodes": 1, "env_kwargs": SHORT}


@pytest.fixture(autouse=True)
def _examples_on_path(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)


@pytest.mark.parametrize("task", ENVS)
def test_training_resumes_bit_identically_and_evaluates(task, tmp_path):
    module = task.partition(":")[0]
    package = {"rebuild_on_reset": "panda_gym"}.get(module, module)
    if ":" in task:
        pytest.importorskip(package)
    settings = SMALL | ENVS[task]
    whole = tiny_run(tmp_path / "whole", task, **settings)
    tiny_run(tmp_path / "run", task, **settings, epochs=1)
    tiny_run(tmp_path / "run", task, **settings, resume=True)
    assert same_run(tmp_path / "whole", tmp_path / "run")

    agent = mrn.load(tmp_path / "run", trust_code=True)
    result = agent.evaluate(episodes=2, seed=1)
    assert result == whole.evaluate(episodes=2, seed=1)
    assert (result.engine, result.episodes) == ("gymnasium", 2)
    env = make_env(agent.spec.env_id, agent.spec.env_kwargs)
    observation, _ = env.reset(seed=0)
    action, _ = agent.predict(observation, deterministic=True)
    assert env.action_space.contains(action)
    assert np.isfinite(env.step(action)[0]["observation"]).all()
    env.close()


def test_check_warns_about_a_stateful_simulator_that_still_trains(tmp_path):
    """PandaPush keeps state across resets: its runs resume, but not bit-identically."""
    pytest.importorskip("panda_gym")
    task = "panda_gym:PandaPush-v3"
    found = {finding.what: finding for finding in check_env(task)}["determinism"]
    assert (found.verdict, found.found[:22]) == ("warning", "after other episodes, ")
    tiny_run(tmp_path / "run", task, **SMALL, epochs=1)
    tiny_run(tmp_path / "run", task, **SMALL, resume=True)
    assert [row["epoch"] for row in metrics(tmp_path / "run")] == ["1", "2"]


def test_parking_needs_max_episode_steps_and_has_a_batched_reward():
    pytest.importorskip("highway_env")
    with pytest.raises(mrn.UserError, match="no max_episode_steps.*gymnasium.register.*env_kwargs"):
        find_task("highway_env:parking-v0")
    task = find_task("highway_env:parking-v0", env_kwargs=SHORT)
    assert task.spec.horizon == 10
    assert task.reward.batched  # equals the row-by-row reward up to rounding
