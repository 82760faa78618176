"""A search that trains for real: it prunes what does not learn. Minutes: `make test-slow`."""

import subprocess

import pytest

from mrn.sweeps.trials import read_trials
from tests.commands import MRN
from tests.training.helpers import metrics

pytestmark = pytest.mark.slow

SPACE = """
learning_rate = { choices = [1e-6, 1e-3] }  # the first one is too small to learn anything
epochs = 5
cycles = 4
eval_episodes = 20
"""


def test_search_prunes_slow_learners(tmp_path):
    (tmp_path / "space.toml").write_text(SPACE)
    options = ["--space=space.toml", "--trials=6", "--seeds=1", "--jobs=1", "--threads=1"]
    command = [MRN, "tune", "FetchReach", *options, "--name=mine"]
    shown = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    rows = read_trials(tmp_path / "runs/mine/trials.csv")
    assert float(rows[0]["learning_rate"]) == 1e-3
    assert float(rows[0]["success"]) > 0.2
    pruned = [row for row in rows if row["state"] == "pruned"]
    assert [(row["trial"], float(row["learning_rate"])) for row in pruned] == [("5", 1e-6)]
    assert len(metrics(tmp_path / "runs/mine/FetchReach/ddpg-mrn+fast+trial-005/seed-1")) < 5
    assert "6 trials: 5 complete, 1 pruned" in shown
