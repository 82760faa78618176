"""Learning for real, by either recipe. Minutes each: `make test-slow`."""

import subprocess
import sys

import pytest

import mrn
from mrn.training.evaluation import evaluate_agent
from tests.training.helpers import metrics

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("recipe", "steps"), [("fast", 12_500), ("paper", 100_000)])
def test_mrn_reaches(tmp_path, recipe, steps):
    epochs = {"fast": 1, "paper": 2}[recipe]
    mrn.train("FetchReach", recipe=recipe, epochs=epochs, run_dir=tmp_path / "run")
    assert int(metrics(tmp_path / "run")[-1]["env_steps"]) == steps
    assert float(metrics(tmp_path / "run")[-1]["success"]) >= 0.95


@pytest.mark.parametrize(("recipe", "steps"), [("fast", 100_000), ("paper", 350_000)])
def test_mrn_pushes_on_either_engine(tmp_path, recipe, steps):
    epochs = {"fast": 8, "paper": 7}[recipe]
    agent = mrn.train("FetchPush", recipe=recipe, epochs=epochs, seed=100, run_dir=tmp_path / "run")
    assert int(metrics(tmp_path / "run")[-1]["env_steps"]) == steps
    assert float(metrics(tmp_path / "run")[-1]["success"]) >= 0.9
    envpool, gymnasium = (
        evaluate_agent(agent, 200, seed=0, engine=engine) for engine in ("envpool", "gymnasium")
    )
    variance = sum(each.success * (1 - each.success) / 200 for each in (envpool, gymnasium))
    assert abs(envpool.success - gymnasium.success) <= 3 * max(variance**0.5, 0.01)


def test_two_processes_reach(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += ["-m", "mrn", "train", "FetchReach", "--epochs=1", "--run-dir", tmp_path / "run"]
    subprocess.run(command, check=True)
    (row,) = metrics(tmp_path / "run")
    assert int(row["env_steps"]) == 12_500
    assert float(row["success"]) >= 0.95
