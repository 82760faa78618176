"""The example of docs/sb3.md, whole: Stable-Baselines3 learns with our critic."""

import pytest
from stable_baselines3.common.evaluation import evaluate_policy

from tests.test_docs import run_examples
from tests.training.helpers import tiny_run

pytestmark = pytest.mark.slow


def test_the_example_reaches(tmp_path, monkeypatch):
    tiny_run(tmp_path / "runs" / "reach", epochs=1)  # which the page takes for granted
    names = run_examples("sb3.md", tmp_path, monkeypatch)
    names["reached"].clear()
    evaluate_policy(names["model"], names["env"], n_eval_episodes=100, callback=names["note"])
    assert sum(names["reached"]) >= 90
