"""Scheduling within this process, with backends that simulate failures."""

import errno
import os
import signal
from dataclasses import replace

import pytest

from mrn.runs.layout import METRICS
from mrn.sweeps import jobs as jobs_module
from mrn.sweeps import watchdog
from mrn.sweeps.jobs import plan_jobs
from mrn.sweeps.overview import Overview
from mrn.sweeps.scheduler import Outcome, run_sweep
from mrn.utils.errors import Interrupted, RunError
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


class HangingBackend(InstantBackend):
    """Never finishes a run unless it is killed."""

    capacity = 2

    def __init__(self):
        self.events = []

    def start(self, job):
        return HangingRun(self.events, job.config.critic)


class HangingRun(InstantBackend):
    def __init__(self, events, name):
        self.events, self.name = events, name

    def poll(self):
        if len(self.events) == 0:
            os.kill(os.getpid(), signal.SIGINT)
            self.events.append("interrupted")
        return Outcome("lost", "killed") if f"kill {self.name}" in self.events else None

    def stop(self):
        self.events.append(f"stop {self.name}")
        if self.name == "mrn":
            raise ConnectionError("the cluster is gone")

    def kill(self):
        self.events.append(f"kill {self.name}")


def test_interrupted_sweep_stops_every_run_and_does_not_wait_forever(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mrn.sweeps.scheduler.STOP_TIMEOUT", 0.3)
    backend = HangingBackend()
    with pytest.raises(Interrupted):
        run_sweep(plan_jobs(SUITE, tmp_path, 1), backend, Overview())
    expected = ["interrupted", "stop mrn", "stop bvn", "kill mrn", "kill bvn"]
    assert backend.events == expected
    output = capsys.readouterr().out
    assert "ddpg-mrn/seed-1: cannot stop it: ConnectionError: the cluster is gone" in output
    assert output.count("it did not save within") == 2


class StallingBackend(InstantBackend):
    """Trains one epoch, then hangs; the second process finishes the run."""

    processes, killed, attempts = 0, False, 0

    def start(self, job):
        self.processes, self.killed = self.processes + 1, False
        return super().start(job)

    def poll(self):
        if self.killed:
            return Outcome("lost", "killed by SIGKILL")
        if self.processes == 2:
            return super().poll()
        write_rows(self.job.folder, 1)
        return None

    def kill(self):
        self.attempts += 1
        if self.attempts == 1:
            raise ConnectionError("try again")
        self.killed = True


def test_run_without_a_new_epoch_is_killed_and_resumed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mrn.sweeps.scheduler.POLL_SECONDS", 0.01)
    monkeypatch.setattr("mrn.sweeps.watchdog.CHECK_SECONDS", 0)
    monkeypatch.setattr("mrn.sweeps.watchdog.FIRST_EPOCH_LIMIT", 0.1)
    (job,) = plan_jobs(replace(SUITE, critics=("mrn",)), tmp_path, 1)
    run_sweep([job], StallingBackend(), Overview())
    assert job.finished
    output = capsys.readouterr().out
    assert "cannot stop it: ConnectionError: try again" in output
    assert "seed-1: no new epoch in 0 s; it will be resumed" in output
    assert "resumed after epoch 1" in output


def test_limit_grows_with_the_longest_epoch(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(watchdog.time, "monotonic", lambda: now[0])
    watch = watchdog.Watchdog()
    job = plan_jobs(SUITE, tmp_path, 1)[0]
    hour = 3600.0
    for at, epochs, stalled in [
        (0, 0, None),
        (23 * hour, 0, None),  # the first epoch may be long
        (25 * hour, 0, 25 * hour),
        (26 * hour, 1, None),
        (280 * hour, 1, None),  # 10 times the first epoch
        (287 * hour, 1, 261 * hour),
    ]:
        now[0] = at
        if epochs:
            write_rows(job.folder, epochs)
        assert watch.stalled_seconds(job) == stalled


class BusyBackend(InstantBackend):
    """Another sweep trains the run: it is locked at first, and finished at the second attempt."""

    polls = 0

    def poll(self):
        self.polls += 1
        if self.polls == 1:
            return Outcome("locked")
        write_rows(self.job.folder, self.job.epochs)
        return Outcome("failed", "cannot resume: there is no checkpoint")


def test_run_of_another_sweep_does_not_fail(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mrn.sweeps.scheduler.POLL_SECONDS", 0)
    run_sweep(plan_jobs(replace(SUITE, critics=("mrn",)), tmp_path, 1), BusyBackend(), Overview())
    output = capsys.readouterr().out
    assert output.count("started ") == 2
    assert "warning   FetchReach/ddpg-mrn/seed-1: cannot resume: there is no check" in output
    assert "finished  FetchReach/ddpg-mrn/seed-1" in output
