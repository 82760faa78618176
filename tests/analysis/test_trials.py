"""Trials of `mrn tune` in the report."""

import json
import re
import shutil
from pathlib import Path

import pytest

from mrn.analysis.report import write_report
from mrn.analysis.run import Run
from mrn.analysis.runs import find_runs, group
from mrn.analysis.summary import summarize
from mrn.analysis.trials import mark_abandoned, trials_table
from mrn.sweeps.tuning import tune
from tests.sweeps.helpers import CurveBackend, skip_waiting
from tests.sweeps.test_tuning import SEARCH, FailingBackend, number

LEVELS = [0.5, 0.6, 0.5, 0.4, 0.5, 0.1, 0.9]


@pytest.fixture
def search(tmp_path, monkeypatch):
    skip_waiting(monkeypatch)
    tune(SEARCH, tmp_path / "mine", 7, CurveBackend(lambda config, _: LEVELS[number(config)]))
    return tmp_path / "mine"


def page_data(folder, tmp_path):
    page, finished = write_report(folder, tmp_path / "report")
    text = re.search(r'id="data">(.*?)</script>', page.read_text(), re.S)[1]
    return json.loads(text), finished


@pytest.mark.parametrize("root", ["mine", "."])
def test_report_lists_all_trials_and_compares_the_complete_ones(search, tmp_path, root):
    data, finished = page_data(tmp_path / root, tmp_path)
    assert finished  # no more results will follow, although one trial was pruned
    assert data["problems"] == []
    (experiment,) = data["experiments"]
    trials = experiment["trials"]
    assert trials["header"] == [
        "trial", "state", "mean success", "evaluations", "learning_rate", "batch_size",
    ]  # fmt: skip
    assert [row[0] for row in trials["rows"]] == ["6", "1", "0", "2", "4", "3", "5"]
    assert trials["rows"][0][1:4] == ["complete", "90.0%", "8"]
    assert trials["rows"][-1][1:4] == ["pruned", "10.0%", "1"]
    assert len(experiment["methods"]) == 6
    assert {row["epochs"] for row in experiment["rows"]} == {4}
    pruned = [run for run in experiment["runs"] if run["problem"]]
    assert [run["problem"] for run in pruned] == ["pruned by mrn tune"]
    summary = summarize(group(find_runs(search))[""])
    assert (summary.warnings, summary.damaged) == ((), ())


def test_failed_trial_is_a_problem(tmp_path, monkeypatch):
    skip_waiting(monkeypatch)
    tune(SEARCH, tmp_path / "mine", 2, FailingBackend({1}))
    with pytest.warns(UserWarning, match="not shown.*critic_loss is not finite"):
        data, finished = page_data(tmp_path / "mine", tmp_path)
    assert finished
    (problem,) = data["problems"]
    assert problem.endswith("trial-001/seed-1: critic_loss is not finite")


def test_other_experiments_have_no_trials(search, tmp_path):
    (search / "trials.csv").write_text("mine,yours\n1,2\n")
    data, finished = page_data(search, tmp_path)
    assert data["experiments"][0]["trials"] is None
    assert not finished  # the pruned run now counts as unfinished


@pytest.mark.parametrize(
    ("old", "new"),
    [("0.9", "high"), ("0.9", "9"), ("0.9", "nan"), ("complete", "=1+1"), (",", ""), ("6", "\0")],
)
def test_damaged_list_of_trials_marks_its_runs(search, tmp_path, old, new):
    shutil.copytree(search, tmp_path / "other")
    file = search / "trials.csv"
    header, rows = file.read_text().split("\n", maxsplit=1)
    assert old in rows
    file.write_text(f"{header}\n{rows.replace(old, new, 1)}")
    with pytest.warns(UserWarning, match=r"trials.csv is damaged"):
        data, _ = page_data(tmp_path, tmp_path)
    (experiment,) = data["experiments"]
    assert experiment["name"] == "other"
    assert len(experiment["trials"]["rows"]) == 7
    marked = [text for text in data["problems"] if "mine/trials.csv is damaged: " in text]
    assert len(marked) == len(data["problems"]) == 13  # seven trials, one of them pruned


def test_run_near_the_root_has_no_trials():
    (run,) = mark_abandoned([Run(Path("/run"), "", "FetchReach", "ddpg-mrn", 1, {})])
    assert not run.problem
    assert trials_table([run]) is None
