"""Environments that nobody here wrote: each is trained on, resumed and evaluated."""

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
ZOO = {
    "panda_gym:PandaReach-v3": {},
    "rebuild_on_reset:RebuiltPush-v0": {},  # PandaPush, rebuilt at every reset
    "highway_env:parking-v0": {},
    "PointMaze_UMaze-v3": {},
    "AntMaze_UMaze-v5": {"reward_shift": -1.0},
}
# Two cycles, so that the simulation of a run that goes on has less behind it than a whole run's.
SMALL = {"cycles": 2, "num_envs": 1, "gradient_steps": 2, "eval_episodes": 1, "env_kwargs": SHORT}


@pytest.fixture(autouse=True)
def _examples_on_path(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)


@pytest.mark.parametrize("task", ZOO)
def test_it_trains_goes_on_bit_for_bit_and_is_evaluated(task, tmp_path):
    needs = {"rebuild_on_reset": "panda_gym"}.get(task.partition(":")[0], task.partition(":")[0])
    if ":" in task:
        pytest.importorskip(needs)
    settings = SMALL | ZOO[task]
    whole = tiny_run(tmp_path / "whole", task, **settings)
    tiny_run(tmp_path / "run", task, **settings, epochs=1)
    tiny_run(tmp_path / "run", task, **settings, resume=True)
    assert same_run(tmp_path / "whole", tmp_path / "run")

    agent = mrn.load(tmp_path / "run")
    found = agent.evaluate(episodes=2, seed=1)
    assert found == whole.evaluate(episodes=2, seed=1)
    assert (found.engine, found.episodes) == ("gymnasium", 2)
    env = make_env(agent.spec.env_id, agent.spec.env_kwargs)
    observation, _ = env.reset(seed=0)
    action, _ = agent.predict(observation, deterministic=True)
    assert env.action_space.contains(action)
    assert np.isfinite(env.step(action)[0]["observation"]).all()
    env.close()


def test_a_simulation_that_remembers_is_found_out_and_trained_on_all_the_same(tmp_path):
    """Something outlives the reset of PandaPush: a run can be resumed, but not bit for bit."""
    pytest.importorskip("panda_gym")
    task = "panda_gym:PandaPush-v3"
    found = {each.what: each for each in check_env(task)}["same seed, same episode"]
    assert (found.verdict, found.found[:21]) == ("but", "after other episodes ")
    tiny_run(tmp_path / "run", task, **SMALL, epochs=1)
    tiny_run(tmp_path / "run", task, **SMALL, resume=True)
    assert [row["epoch"] for row in metrics(tmp_path / "run")] == ["1", "2"]


def test_parking_has_no_limit_of_its_own_and_a_reward_for_batches():
    pytest.importorskip("highway_env")
    with pytest.raises(mrn.UserError, match="no limit of steps.*max_episode_steps.*env_kwargs"):
        find_task("highway_env:parking-v0")
    task = find_task("highway_env:parking-v0", env_kwargs=SHORT)
    assert task.spec.horizon == 10
    assert task.reward.batched  # the same as by row but for rounding
