"""Jobs: planning the runs of a suite."""

import pytest

from mrn.analysis.runs import find_runs, group
from mrn.envs import TASKS
from mrn.runs.run_dir import RunDir
from mrn.sweeps.jobs import RunStatus, plan_jobs
from mrn.sweeps.overview import Overview
from mrn.sweeps.scheduler import run_sweep
from mrn.sweeps.suites import Suite
from mrn.utils.errors import UserError
from tests.sweeps.helpers import SUITE, InstantBackend, write_rows


def test_run_killed_before_its_settings_were_written_is_not_started(tmp_path):
    folder = plan_jobs(SUITE, tmp_path, 1)[0].folder
    folder.mkdir(parents=True)
    (folder / ".config.json.new").write_text('{"config"')
    jobs = plan_jobs(SUITE, tmp_path, 3)
    assert [(job.status, job.config.threads) for job in jobs] == [(RunStatus(), 3)] * 2
    run_sweep(jobs, InstantBackend(), Overview())
    assert all(job.finished for job in jobs)


def test_jobs_are_selected_by_pattern(tmp_path):
    names = ["FetchReach/ddpg-mrn/seed-1", "FetchReach/ddpg-bvn/seed-1"]
    assert [job.name for job in plan_jobs(SUITE, tmp_path, 1)] == names
    (job,) = plan_jobs(SUITE, tmp_path, 1, "*/ddpg-b*/seed-?")
    assert (job.name, job.config.critic) == (names[1], "bvn")
    with pytest.raises(UserError, match="no run of the suite matches 'bvn': its 2 runs") as caught:
        plan_jobs(SUITE, tmp_path, 1, "bvn")
    assert names[0] in str(caught.value)


def test_other_settings_raise_with_the_fixes_of_a_sweep(tmp_path):
    job = plan_jobs(SUITE, tmp_path, 2)[0]
    with RunDir(job.folder, job.config, TASKS["FetchReach"].spec) as run:
        run.begin(None)
    assert plan_jobs(SUITE, tmp_path, 1)[0].config.threads == 2  # as it was started
    other = Suite(("FetchReach",), seeds=(1,), folder="s", settings={"epochs": 2, "hidden_dim": 8})
    with pytest.raises(UserError, match="hidden_dim was 256, now 8") as caught:
        plan_jobs(other, tmp_path, 1)
    assert 'folder = "NAME"' in str(caught.value)
    assert "--runs" in str(caught.value)
    assert "--run-dir" not in str(caught.value)


def test_grid_combinations_are_separate_methods(tmp_path):
    tables = {"settings": {"epochs": 2}, "grid": {"learning_rate": [1e-3, 2e-3]}}
    suite = Suite(("FetchReach",), seeds=(1, 2), folder="s", **tables)
    for job in plan_jobs(suite, tmp_path, 1):
        with RunDir(job.folder, job.config, TASKS["FetchReach"].spec) as run:
            run.begin(None)
            write_rows(job.folder, 2)
    assert all(job.finished for job in plan_jobs(suite, tmp_path, 1))
    methods = group(find_runs(tmp_path))["s"]["FetchReach"]
    assert {name: len(runs) for name, runs in methods.items()} == {
        "ddpg-mrn+learning_rate=0.001": 2,
        "ddpg-mrn+learning_rate=0.002": 2,
    }
