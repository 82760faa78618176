"""Sweeps within this process: what they make of folders, and what they read."""

import errno
import io
import json
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.live import Live

from mrn.analysis.runs import find_runs, group
from mrn.cli import sweeps
from mrn.envs import TASKS
from mrn.runs.layout import LOCK, METRICS, log_file
from mrn.runs.metrics import COLUMNS, read_metrics, write_metrics
from mrn.runs.run_dir import RunDir
from mrn.sweeps import backends
from mrn.sweeps import jobs as jobs_module
from mrn.sweeps.backends import LocalBackend
from mrn.sweeps.jobs import RunStatus, plan_jobs
from mrn.sweeps.overview import Overview
from mrn.sweeps.scheduler import Outcome, run_sweep
from mrn.sweeps.suites import Suite
from mrn.utils.errors import RunError, UserError
from mrn.utils.files import read_error

SUITE = Suite(("FetchReach",), ("mrn", "bvn"), seeds=(1,), folder="s", settings={"epochs": 2})


def write_rows(folder: Path, count: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    row = dict.fromkeys(COLUMNS, 0.5)
    write_metrics(folder / METRICS, COLUMNS, [row | {"epoch": n + 1} for n in range(count)])


class Instantly:
    """Trains a run by writing down that it is done."""

    capacity = 1

    def start(self, job):
        self.job = job
        return self

    def poll(self):
        write_rows(self.job.folder, self.job.epochs)
        return Outcome("done")

    def stop(self):
        pass

    def close(self):
        pass


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A function that puts a shell script in the place of Python; $4 is the run's folder."""

    def put(script: str) -> None:
        file = tmp_path / "python"
        file.write_text(f"#!/bin/sh\ncat > {tmp_path}/settings\n{script}")
        file.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(file))

    return put


def test_a_run_killed_while_it_wrote_its_settings_was_not_begun(tmp_path):
    folder = plan_jobs(SUITE, tmp_path, 1)[0].folder
    folder.mkdir(parents=True)
    (folder / ".config.json.new").write_text('{"config"')
    jobs = plan_jobs(SUITE, tmp_path, 3)
    assert [(job.status, job.config.threads) for job in jobs] == [(RunStatus(), 3)] * 2
    run_sweep(jobs, Instantly(), Overview())
    assert all(job.finished for job in jobs)


def test_a_part_of_a_suite_is_chosen_by_name(tmp_path):
    names = ["FetchReach/ddpg-mrn/seed-1", "FetchReach/ddpg-bvn/seed-1"]
    assert [job.name for job in plan_jobs(SUITE, tmp_path, 1)] == names
    (job,) = plan_jobs(SUITE, tmp_path, 1, "*/ddpg-b*/seed-?")
    assert (job.name, job.config.critic) == (names[1], "bvn")
    with pytest.raises(UserError, match="no run of the suite is called 'bvn': its 2 runs") as wrong:
        plan_jobs(SUITE, tmp_path, 1, "bvn")
    assert names[0] in str(wrong.value)


def test_other_settings_are_refused_with_the_remedies_of_a_sweep(tmp_path):
    job = plan_jobs(SUITE, tmp_path, 2)[0]
    with RunDir(job.folder, job.config, TASKS["FetchReach"].spec) as run:
        run.begin(None)
    assert plan_jobs(SUITE, tmp_path, 1)[0].config.threads == 2  # as it was begun
    other = Suite(("FetchReach",), seeds=(1,), folder="s", settings={"epochs": 2, "hidden_dim": 8})
    with pytest.raises(UserError, match="width was 256, now 8") as caught:
        plan_jobs(other, tmp_path, 1)
    assert 'folder = "NAME"' in str(caught.value)
    assert "--runs" in str(caught.value)
    assert "--run-dir" not in str(caught.value)


def test_the_combinations_of_a_grid_are_methods_of_their_own(tmp_path):
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


def test_only_what_changed_is_read_again(tmp_path, monkeypatch):
    seeds = tuple(range(30))
    jobs = plan_jobs(Suite(("FetchReach",), ("mrn", "bvn"), seeds=seeds, folder="s"), tmp_path, 1)
    for job in jobs:
        write_rows(job.folder, 3)
    reads = []
    monkeypatch.setattr(jobs_module, "read_metrics", lambda f: reads.append(f) or read_metrics(f))
    overview = Overview()
    overview.console = Console(file=io.StringIO(), force_terminal=True, width=100)
    overview.live = Live(console=overview.console, auto_refresh=False)
    overview.begin(jobs, jobs)
    assert len(reads) == len(jobs) == 60
    running = jobs[:2]
    for job in running:
        (job.folder / LOCK).touch()
    for _ in range(20):
        overview.refresh(running, 58)
    assert len(reads) == 60
    write_rows(running[1].folder, 4)
    for _ in range(20):
        overview.refresh(running, 58)
    assert reads[60:] == [running[1].folder / METRICS]
    shown = overview.live.renderable.renderables[0]
    assert list(shown.columns[1].cells) == ["3/25", "4/25"]
    assert overview.epochs[running[1]] == 4


def test_the_time_left_follows_the_epochs_of_the_running(tmp_path, monkeypatch):
    jobs = plan_jobs(SUITE, tmp_path, 1)
    overview = Overview()
    overview.console = Console(file=io.StringIO(), force_terminal=True)
    overview.begin(jobs, jobs)
    assert overview._left() == "-"
    clock = overview.started_at
    monkeypatch.setattr("mrn.sweeps.overview.time.perf_counter", lambda: clock + 10)
    write_rows(jobs[0].folder, 1)
    (jobs[0].folder / LOCK).touch()
    overview.refresh(jobs[:1], 1)
    assert overview._left() == "30 s"  # 1 epoch in 10 s, 3 to go
    overview.done(jobs[0])
    assert overview._left() == "10 s"


def test_a_real_time_signal_does_not_end_the_sweep_and_the_log_is_kept(tmp_path, stand_in, capsys):
    jobs = plan_jobs(Suite(("FetchReach",), seeds=(1,), folder="s"), tmp_path / "runs", 1)
    write_rows(tmp_path / "done", jobs[0].epochs)
    number = signal.SIGRTMIN + 1
    stand_in(f"""
        if [ -e {tmp_path}/once ]; then
            echo second; mkdir $4; cp {tmp_path}/done/{METRICS} $4
        else
            echo first; touch {tmp_path}/once; kill -{number} $$
        fi""")
    run_sweep(jobs, LocalBackend(1), Overview())
    assert f"killed by signal {number}" in capsys.readouterr().out
    first, again, second = log_file(jobs[0].folder).read_text().splitlines()
    assert (first, second) == ("first", "second")
    assert again.startswith("--- started again 20")
    assert json.loads((tmp_path / "settings").read_text())["seed"] == 1


def test_a_failure_is_told_in_the_last_processs_own_words(tmp_path, stand_in):
    jobs = plan_jobs(Suite(("FetchReach",), seeds=(1,), folder="s"), tmp_path / "runs", 1)
    for script, message in (("echo it broke; exit 3", "it broke"), ("exit 4", "exit code 4")):
        stand_in(script)
        with pytest.raises(RunError, match=f"seed-1: {message} \\(see "):
            run_sweep(jobs, LocalBackend(1), Overview())


def test_a_file_in_the_way_of_one_run_fails_that_one_alone(tmp_path, stand_in):
    jobs = plan_jobs(SUITE, tmp_path / "runs", 1)
    write_rows(tmp_path / "done", 2)
    jobs[0].folder.parents[1].mkdir(parents=True)
    jobs[0].folder.parent.write_text("in the way")
    stand_in(f"mkdir $4; cp {tmp_path}/done/{METRICS} $4")
    with pytest.raises(RunError, match=r"1 of 2 runs failed.*cannot write .*seed-1.log"):
        run_sweep(jobs, LocalBackend(1), Overview())
    assert jobs[1].finished


def test_a_folder_that_cannot_be_written_to_is_one_sentence(tmp_path):
    (tmp_path / "runs").write_text("in the way")
    jobs = plan_jobs(SUITE, tmp_path / "runs", 1)
    with pytest.raises(UserError, match=r"cannot write to .*runs/s: .*/runs is a file; .*--runs"):
        run_sweep(jobs, LocalBackend(1), Overview())
    with pytest.raises(UserError, match="cannot write to /proc/none/s: .*; choose another --runs"):
        run_sweep(plan_jobs(SUITE, Path("/proc/none"), 1), LocalBackend(1), Overview())


class Damages(Instantly):
    """Says that it is done with the first run, and leaves metrics that nobody can read."""

    def poll(self):
        if self.job.config.critic != "mrn":
            return super().poll()
        self.job.folder.mkdir(parents=True)
        (self.job.folder / METRICS).write_text("epoch,success\nlast,high\n")
        return Outcome("done")


def test_damaged_metrics_fail_their_own_run_alone(tmp_path, capsys):
    jobs = plan_jobs(SUITE, tmp_path, 1)
    with pytest.raises(RunError, match=r"1 of 2 runs failed, the others are finished: .*-mrn/seed"):
        run_sweep(jobs, Damages(), Overview())
    assert jobs[1].finished
    assert "finished  FetchReach/ddpg-bvn/seed-1" in capsys.readouterr().out


def test_metrics_that_cannot_be_read_for_a_moment_are_read_later(tmp_path, monkeypatch, capsys):
    jobs, read = plan_jobs(SUITE, tmp_path, 1), jobs_module._stat
    refused = {job.folder / METRICS: 3 for job in jobs}

    def flickers(file):
        if refused.get(file) and (jobs[0].folder / METRICS).exists():
            refused[file] -= 1
            raise read_error(file, OSError(errno.ESTALE, "Stale file handle"))
        return read(file)

    monkeypatch.setattr(jobs_module, "_stat", flickers)
    monkeypatch.setattr("mrn.sweeps.scheduler.POLL_SECONDS", 0)
    run_sweep(jobs, Instantly(), Overview())
    assert all(job.finished for job in jobs)
    assert "Stale file handle; it goes on from where it was" in capsys.readouterr().out


def test_metrics_that_stay_unreadable_fail_their_run_after_a_while(tmp_path, monkeypatch, capsys):
    jobs, read = plan_jobs(SUITE, tmp_path, 1), jobs_module._stat

    def refuses(file):
        if file.parent == jobs[0].folder and file.exists():
            raise read_error(file, PermissionError(errno.EACCES, "Permission denied"))
        return read(file)

    monkeypatch.setattr(jobs_module, "_stat", refuses)
    monkeypatch.setattr("mrn.sweeps.scheduler.POLL_SECONDS", 0)
    monkeypatch.setattr("mrn.sweeps.scheduler.UNREADABLE_TIMEOUT", 0.2)
    with pytest.raises(RunError, match=r"1 of 2 runs failed.*-mrn/seed-1: cannot read .*denied"):
        run_sweep(jobs, Instantly(), Overview())
    assert jobs[1].finished


class Interrupts(Instantly):
    """Every process is killed after an epoch, until one has done them all."""

    def __init__(self, epochs: int) -> None:
        self.left = epochs

    def poll(self):
        self.left -= 1
        write_rows(self.job.folder, self.job.epochs - self.left)
        return Outcome("lost", "killed") if self.left else Outcome("done")


def test_a_run_that_gets_on_may_be_interrupted_any_number_of_times(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mrn.sweeps.scheduler.POLL_SECONDS", 0)
    long = replace(SUITE, critics=("mrn",), settings={"epochs": 9})
    run_sweep(plan_jobs(long, tmp_path, 1), Interrupts(9), Overview())
    assert capsys.readouterr().out.count("lost ") == 8


class GoesBack(Instantly):
    """Lost at epochs 5 and 4 in turns: it goes on from a checkpoint of the fourth."""

    times = 0

    def poll(self):
        self.times += 1
        write_rows(self.job.folder, 5 if self.times % 2 else 4)
        return Outcome("lost", "killed")


def test_going_back_to_a_checkpoint_is_no_progress(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mrn.sweeps.scheduler.POLL_SECONDS", 0)
    long = replace(SUITE, critics=("mrn",), settings={"epochs": 9})
    with pytest.raises(RunError, match="killed, 4 times"):
        run_sweep(plan_jobs(long, tmp_path, 1), GoesBack(), Overview())


class Dies(Instantly):
    """Every process is killed before its first epoch ends."""

    def poll(self):
        return Outcome("lost", "killed")


def test_a_run_that_dies_at_the_same_place_is_given_up(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mrn.sweeps.scheduler.POLL_SECONDS", 0)
    with pytest.raises(RunError, match="killed, 4 times"):
        run_sweep(plan_jobs(replace(SUITE, critics=("mrn",)), tmp_path, 1), Dies(), Overview())
    assert capsys.readouterr().out.count("lost ") == 3


@pytest.mark.parametrize(
    ("device", "jobs", "gpus"), [("auto", 3, ["0", "1", "2"]), ("cpu", 2, []), ("cuda:1", 2, [])]
)
def test_there_is_a_run_for_each_gpu_that_the_suite_may_use(
    tmp_path, monkeypatch, device, jobs, gpus
):
    (tmp_path / "s.toml").write_text(f'tasks = ["FetchReach"]\n[settings]\ndevice = "{device}"')
    monkeypatch.setattr("mrn.cli.sweeps.visible_gpus", lambda: ["0", "1", "2"])
    monkeypatch.setattr("mrn.cli.sweeps.default_threads", lambda: 2)
    asked = []
    monkeypatch.setattr(backends, "LocalBackend", lambda *given: asked.append(given))
    monkeypatch.setattr("mrn.sweeps.scheduler.run_sweep", lambda *_: None)
    sweeps.sweep(str(tmp_path / "s.toml"), runs=tmp_path / "runs")
    assert asked == [(jobs, gpus)]


def test_runs_are_divided_between_the_gpus(tmp_path, stand_in):
    suite = replace(SUITE, critics=("mrn", "bvn", "dn"))
    jobs = plan_jobs(suite, tmp_path / "runs", 1)
    write_rows(tmp_path / "done", 2)
    # Each waits for the others, so that all run at a time.
    stand_in(f"""
        mkdir $4; echo $CUDA_VISIBLE_DEVICES > $4/gpu
        while [ $(ls -d {tmp_path}/runs/s/*/*/*/gpu | wc -l) -lt 3 ]; do sleep 0.05; done
        cp {tmp_path}/done/{METRICS} $4""")
    run_sweep(jobs, LocalBackend(3, ["4", "6"]), Overview())
    assert [(job.folder / "gpu").read_text() for job in jobs] == ["4\n", "6\n", "4\n"]
