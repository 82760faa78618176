"""Local processes: logs, failures and GPUs."""

import json
import os
import signal
import sys
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mrn.cli import sweeps
from mrn.runs.layout import log_file
from mrn.runs.lock import RunLock
from mrn.sweeps import backends
from mrn.sweeps.backends import LocalBackend
from mrn.sweeps.jobs import plan_jobs
from mrn.sweeps.overview import Overview
from mrn.sweeps.scheduler import Outcome, run_sweep
from mrn.sweeps.suites import Suite
from mrn.utils.errors import Interrupted, RunError, UserError
from tests.commands import until
from tests.sweeps.helpers import SUITE, write_rows


@pytest.fixture
def fake_python(tmp_path, monkeypatch):
    """Return a function that replaces Python by a shell script; $4 is the run's folder."""

    def replace_python(script: str) -> None:
        file = tmp_path / "python"
        file.write_text(f"#!/bin/sh\ncat > {tmp_path}/settings\n{script}")
        file.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(file))

    return replace_python


def test_run_is_restarted_after_a_real_time_signal_and_keeps_its_log(tmp_path, fake_python, capsys):
    jobs = plan_jobs(Suite(("FetchReach",), seeds=(1,), folder="s"), tmp_path / "runs", 1)
    write_rows(tmp_path / "done", jobs[0].epochs)
    number = signal.SIGRTMIN + 1
    fake_python(f"""
        if [ -e {tmp_path}/once ]; then
            echo second; mkdir $4; cp {tmp_path}/done/* $4
        else
            echo first; touch {tmp_path}/once; kill -{number} $$
        fi""")
    run_sweep(jobs, LocalBackend(1), Overview())
    assert f"killed by signal {number}" in capsys.readouterr().out
    first, again, second = log_file(jobs[0].folder).read_text().splitlines()
    assert (first, second) == ("first", "second")
    assert again.startswith("--- restarted 20")
    assert json.loads((tmp_path / "settings").read_text())["seed"] == 1


def test_failure_shows_the_last_line_of_the_log(tmp_path, fake_python):
    jobs = plan_jobs(Suite(("FetchReach",), seeds=(1,), folder="s"), tmp_path / "runs", 1)
    for script, message in (("echo it broke; exit 3", "it broke"), ("exit 4", "exit code 4")):
        fake_python(script)
        with pytest.raises(RunError, match=f"seed-1: {message} \\(see "):
            run_sweep(jobs, LocalBackend(1), Overview())


def test_reason_of_a_failure_is_not_a_line_of_the_next_process(tmp_path, fake_python):
    (job,) = plan_jobs(replace(SUITE, critics=("mrn",)), tmp_path / "runs", 1)
    fake_python("echo it broke; exit 3")
    first = LocalBackend(1).start(job)
    until(first.poll)
    fake_python("echo epoch 1/2")
    until(LocalBackend(1).start(job).poll)
    assert first.poll().message.startswith("it broke (see ")


def test_process_of_a_locked_run_is_not_a_failure(tmp_path):
    (job,) = plan_jobs(replace(SUITE, critics=("mrn",)), tmp_path / "runs", 1)
    job.folder.mkdir(parents=True)
    with closing(RunLock(job.folder)):
        assert until(LocalBackend(1).start(job).poll) == Outcome("locked")


def test_file_in_the_way_fails_only_that_run(tmp_path, fake_python):
    jobs = plan_jobs(SUITE, tmp_path / "runs", 1)
    write_rows(tmp_path / "done", 2)
    jobs[0].folder.parents[1].mkdir(parents=True)
    jobs[0].folder.parent.write_text("in the way")
    fake_python(f"mkdir $4; cp {tmp_path}/done/* $4")
    with pytest.raises(RunError, match=r"1 of 2 runs failed.*cannot write .*seed-1.log"):
        run_sweep(jobs, LocalBackend(1), Overview())
    assert jobs[1].finished


def test_unwritable_folder_raises(tmp_path):
    (tmp_path / "runs").write_text("in the way")
    jobs = plan_jobs(SUITE, tmp_path / "runs", 1)
    with pytest.raises(UserError, match=r"cannot write to .*runs/s: .*/runs is a file; .*--runs"):
        run_sweep(jobs, LocalBackend(1), Overview())
    with pytest.raises(UserError, match="cannot write to /proc/none/s: .*; choose another --runs"):
        run_sweep(plan_jobs(SUITE, Path("/proc/none"), 1), LocalBackend(1), Overview())


@pytest.mark.parametrize(
    ("device", "jobs", "gpus"), [("cuda", 3, ["0", "1", "2"]), ("auto", 2, []), ("cuda:1", 2, [])]
)
def test_default_is_one_job_per_usable_gpu(tmp_path, monkeypatch, device, jobs, gpus):
    (tmp_path / "s.toml").write_text(f'tasks = ["FetchReach"]\n[settings]\ndevice = "{device}"')
    monkeypatch.setattr("mrn.cli.sweeps.visible_gpus", lambda: ["0", "1", "2"])
    monkeypatch.setattr("mrn.cli.sweeps.default_threads", lambda: 2)
    created = []
    monkeypatch.setattr(backends, "LocalBackend", lambda *given: created.append(given))
    monkeypatch.setattr("mrn.sweeps.scheduler.run_sweep", lambda *_: None)
    sweeps.sweep(str(tmp_path / "s.toml"), runs=tmp_path / "runs")
    assert created == [(jobs, gpus)]


def test_runs_are_distributed_over_gpus(tmp_path, fake_python):
    settings = SUITE.settings | {"device": "cuda"}
    suite = replace(SUITE, critics=("mrn", "bvn", "dn"), settings=settings)
    jobs = plan_jobs(suite, tmp_path / "runs", 1)
    write_rows(tmp_path / "done", 2)
    # Each waits for the others, so that all run in parallel.
    fake_python(f"""
        mkdir $4; echo $CUDA_VISIBLE_DEVICES > $4/gpu
        while [ $(ls -d {tmp_path}/runs/s/*/*/*/gpu | wc -l) -lt 3 ]; do sleep 0.05; done
        cp {tmp_path}/done/* $4""")
    run_sweep(jobs, LocalBackend(3, ["4", "6"]), Overview())
    assert [(job.folder / "gpu").read_text() for job in jobs] == ["4\n", "6\n", "4\n"]


def interrupt_when(file: Path) -> None:
    """Send this process a Ctrl-C once a file exists."""

    def wait():
        until(file.exists, seconds=30)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait).start()


def test_suspended_run_saves_when_the_sweep_is_interrupted(tmp_path, fake_python):
    (job,) = plan_jobs(replace(SUITE, critics=("mrn",)), tmp_path / "runs", 1)
    fake_python(f"""
        trap 'touch {tmp_path}/saved; exit 143' TERM
        touch {tmp_path}/ready; kill -STOP $$
        while true; do sleep 0.05; done""")
    interrupt_when(tmp_path / "ready")
    with pytest.raises(Interrupted):
        run_sweep([job], LocalBackend(1), Overview())
    assert (tmp_path / "saved").exists()


def test_run_that_ignores_the_interrupt_is_killed_with_its_children(
    tmp_path, fake_python, monkeypatch, capsys
):
    monkeypatch.setattr("mrn.sweeps.scheduler.STOP_TIMEOUT", 0.5)
    (job,) = plan_jobs(replace(SUITE, critics=("mrn",)), tmp_path / "runs", 1)
    fake_python(f"""
        trap '' TERM
        sleep 1000 &
        echo $! > {tmp_path}/child; mv {tmp_path}/child {tmp_path}/ready; wait""")
    interrupt_when(tmp_path / "ready")
    with pytest.raises(Interrupted):
        run_sweep([job], LocalBackend(1), Overview())
    assert "killed    FetchReach/ddpg-mrn/seed-1: it did not save" in capsys.readouterr().out
    state = Path(f"/proc/{(tmp_path / 'ready').read_text().strip()}/stat")
    until(
        lambda: not state.exists() or state.read_text(encoding="utf-8").split()[2] == "Z",
        seconds=10,
    )
