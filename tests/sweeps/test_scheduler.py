"""Scheduling within this process, with backends that simulate failures."""

import errno
from dataclasses import replace

import pytest

from mrn.runs.layout import METRICS
from mrn.sweeps import jobs as jobs_module
from mrn.sweeps.jobs import plan_jobs
from mrn.sweeps.overview import Overview
from mrn.sweeps.scheduler import Outcome, run_sweep
from mrn.utils.errors import RunError
from mrn.utils.files import read_error
from tests.sweeps.helpers import SUITE, InstantBackend, write_rows


class DamagingBackend(InstantBackend):
    """Reports the first run as done, but leaves damaged metrics."""

    def poll(self):
        if self.job.config.critic != "mrn":
            return super().poll()
        self.job.folder.mkdir(parents=True)
        (self.job.folder / METRICS).write_text("epoch,success\nlast,high\n")
        return Outcome("done")


def test_damaged_metrics_fail_only_that_run(tmp_path, capsys):
    jobs = plan_jobs(SUITE, tmp_path, 1)
    with pytest.raises(RunError, match=r"1 of 2 runs failed, the others are finished: .*-mrn/seed"):
        run_sweep(jobs, DamagingBackend(), Overview())
    assert jobs[1].finished
    assert "finished  FetchReach/ddpg-bvn/seed-1" in capsys.readouterr().out


def test_temporarily_unreadable_metrics_are_read_later(tmp_path, monkeypatch, capsys):
    jobs, read = plan_jobs(SUITE, tmp_path, 1), jobs_module._stat
    refused = {job.folder / METRICS: 3 for job in jobs}

    def flaky_stat(file):
        if refused.get(file) and (jobs[0].folder / METRICS).exists():
            refused[file] -= 1
            raise read_error(file, OSError(errno.ESTALE, "Stale file handle"))
        return read(file)

    monkeypatch.setattr(jobs_module, "_stat", flaky_stat)
    monkeypatch.setattr("mrn.sweeps.scheduler.POLL_SECONDS", 0)
    run_sweep(jobs, InstantBackend(), Overview())
    assert all(job.finished for job in jobs)
    assert "Stale file handle; it will be resumed" in capsys.readouterr().out


def test_permanently_unreadable_metrics_fail_the_run(tmp_path, monkeypatch, capsys):
    jobs, read = plan_jobs(SUITE, tmp_path, 1), jobs_module._stat

    def failing_stat(file):
        if file.parent == jobs[0].folder and file.exists():
            raise read_error(file, PermissionError(errno.EACCES, "Permission denied"))
        return read(file)

    monkeypatch.setattr(jobs_module, "_stat", failing_stat)
    monkeypatch.setattr("mrn.sweeps.scheduler.POLL_SECONDS", 0)
    monkeypatch.setattr("mrn.sweeps.scheduler.UNREADABLE_TIMEOUT", 0.2)
    with pytest.raises(RunError, match=r"1 of 2 runs failed.*-mrn/seed-1: cannot read .*denied"):
        run_sweep(jobs, InstantBackend(), Overview())
    assert jobs[1].finished


class InterruptingBackend(InstantBackend):
    """Kills every process after an epoch, until all epochs are done."""

    def __init__(self, epochs: int) -> None:
        self.left = epochs

    def poll(self):
        self.left -= 1
        write_rows(self.job.folder, self.job.epochs - self.left)
        return Outcome("lost", "killed") if self.left else Outcome("done")


def test_run_with_progress_is_restarted_any_number_of_times(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mrn.sweeps.scheduler.POLL_SECONDS", 0)
    long = replace(SUITE, critics=("mrn",), settings={"epochs": 9})
    run_sweep(plan_jobs(long, tmp_path, 1), InterruptingBackend(9), Overview())
    assert capsys.readouterr().out.count("lost ") == 8


class RevertingBackend(InstantBackend):
    """Loses the run at epochs 5 and 4 alternately, as with a checkpoint of epoch 4."""

    times = 0

    def poll(self):
        self.times += 1
        write_rows(self.job.folder, 5 if self.times % 2 else 4)
        return Outcome("lost", "killed")


def test_reverting_to_a_checkpoint_is_no_progress(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mrn.sweeps.scheduler.POLL_SECONDS", 0)
    long = replace(SUITE, critics=("mrn",), settings={"epochs": 9})
    with pytest.raises(RunError, match="killed, 4 times"):
        run_sweep(plan_jobs(long, tmp_path, 1), RevertingBackend(), Overview())


class KillingBackend(InstantBackend):
    """Kills every process before its first epoch ends."""

    def poll(self):
        return Outcome("lost", "killed")


def test_run_without_progress_fails_after_three_restarts(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mrn.sweeps.scheduler.POLL_SECONDS", 0)
    with pytest.raises(RunError, match="killed, 4 times"):
        run_sweep(
            plan_jobs(replace(SUITE, critics=("mrn",)), tmp_path, 1), KillingBackend(), Overview()
        )
    assert capsys.readouterr().out.count("lost ") == 3
