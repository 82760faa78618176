"""The complete Stable-Baselines3 example: SAC learns FetchReach with a metric critic."""

import pytest
from stable_baselines3.common.evaluation import evaluate_policy

from tests.examples.helpers import run_example

pytestmark = pytest.mark.slow


def test_sb3_example_learns_fetch_reach(tmp_path, monkeypatch):
    names = run_example("sb3_sac.py", tmp_path, monkeypatch)
    names["successes"].clear()
    evaluate_policy(
        names["model"], names["env"], n_eval_episodes=100, callback=names["record_success"]
    )
    assert sum(names["successes"]) >= 90
