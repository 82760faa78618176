"""Learning for real, by the paper's protocol. Minutes each: `make test-slow`."""

import pytest

import mrn
from mrn.training.evaluate import evaluate_agent
from tests.training.helpers import metrics

pytestmark = pytest.mark.slow


def test_mrn_reaches(tmp_path):
    mrn.train("FetchReach", epochs=2, run_dir=tmp_path / "run")
    assert float(metrics(tmp_path / "run")[-1]["success"]) >= 0.95


def test_mrn_pushes_on_either_engine(tmp_path):
    agent = mrn.train("FetchPush", epochs=7, seed=100, run_dir=tmp_path / "run")
    assert float(metrics(tmp_path / "run")[-1]["success"]) >= 0.9
    envpool, gymnasium = (
        evaluate_agent(agent, 200, seed=0, engine=engine) for engine in ("envpool", "gymnasium")
    )
    sampling_error = (envpool.standard_error**2 + gymnasium.standard_error**2) ** 0.5
    assert abs(envpool.success - gymnasium.success) <= 3 * max(sampling_error, 0.01)
