"""Tiny suites and runs, sweeps in subprocesses, and a backend that finishes at once."""

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import mrn
from mrn.envs import TASKS, find_task
from mrn.runs.layout import CONFIG, METRICS, weights_file
from mrn.runs.metrics import COLUMNS, write_metrics
from mrn.runs.policy_file import write_policy
from mrn.runs.run_dir import RunDir
from mrn.sweeps import scheduler
from mrn.sweeps.scheduler import Outcome
from mrn.sweeps.suites import Suite
from tests.commands import Command
from tests.training.helpers import TINY, metrics

SETTINGS = {k: v for k, v in TINY.items() if k != "threads"} | {"epochs": 3}
NAMES = [f"FetchReach/ddpg-{c}/seed-{s}" for s in (1, 2) for c in ("mrn", "monolithic", "bvn")]
SUITE = Suite(("FetchReach",), ("mrn", "bvn"), seeds=(1,), folder="s", settings={"epochs": 2})


def write_suite(folder: Path, count: int = 6, **settings) -> Path:
    """Write a suite of six runs, or of one to three with one seed."""
    critics = ["mrn", "monolithic", "bvn"][:count]
    lines = [f"{name} = {value}" for name, value in (SETTINGS | settings).items()]
    file = folder / "tiny.toml"
    file.write_text(
        f'tasks = ["FetchReach"]\ncritics = {critics}\n'
        f"seeds = {[1, 2] if count == 6 else [1]}\n[settings]\n" + "\n".join(lines)
    )
    return file


def start_sweep(folder: Path, *options: str, count: int = 6, prepare=None, **settings) -> Command:
    suite = write_suite(folder, count, **settings)
    words = ("sweep", suite, "--runs", folder / "runs", "--threads=1")
    return Command(*words, *options, prepare=prepare)


def finish(process: Command, code: int = 0) -> str:
    output = "".join(process.communicate(timeout=600))
    assert process.returncode == code, output
    return output


def process_in_epoch_2(runs: Path) -> int | None:
    """Return the pid of a process that has finished some of its epochs."""
    for lock in runs.rglob(".lock"):
        try:
            if len(metrics(lock.parent)) in (1, 2):
                return int(lock.read_text())
        except (FileNotFoundError, ValueError):  # just starting or ending
            continue
    return None


def results(folder: Path, names=NAMES) -> dict[str, list[dict[str, str]]]:
    return {name: metrics(folder / "runs" / "tiny" / name) for name in names}


def write_run(root: Path, success: list[float | None], seed=100, task="FetchPush", **settings):
    """Write a run folder with a given learning curve."""
    config = mrn.Config.of(task, seed=seed, **{"epochs": len(success)} | settings)
    schedule = config.schedule
    rows = []
    for epoch, value in enumerate(success, start=1):
        row = dict.fromkeys(COLUMNS, 1.0) | {"epoch": epoch, "success": value}
        row["env_steps"] = epoch * schedule.cycles * schedule.num_envs * 50
        rows.append(row)
    spec = find_task(task).spec if task in TASKS else TASKS["FetchPush"].spec
    with RunDir(root / config.folder, config, spec) as run:
        run.begin(rows or None)
    return root / config.folder


def write_rows(folder: Path, count: int, success: Callable[[int], float] = lambda _: 0.5) -> None:
    """Write metrics and weights after a number of epochs, given the success rate of each epoch."""
    folder.mkdir(parents=True, exist_ok=True)
    row = dict.fromkeys(COLUMNS, 0.5)
    rows = [row | {"epoch": n, "success": success(n)} for n in range(1, count + 1)]
    write_policy(weights_file(folder), {"epoch": count}, {})
    write_metrics(folder / METRICS, COLUMNS, rows)


class InstantBackend:
    """Finishes a run at once by writing its metrics."""

    capacity = 1

    def prepare(self, jobs):
        pass

    def start(self, job):
        self.job = job
        return self

    def poll(self):
        write_rows(self.job.folder, self.job.epochs)
        return Outcome("done")

    def has_started(self):
        return True

    def stop(self):
        pass

    def kill(self):
        pass

    def close(self):
        pass


def skip_waiting(monkeypatch) -> None:
    """Make sweeps in this process poll without pause and not wait for the disk."""
    monkeypatch.setattr(scheduler, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(os, "fsync", lambda _: None)


class CurveBackend:
    """Writes one epoch of a run at a time, with a success rate computed from its settings."""

    def __init__(self, success: Callable[[mrn.Config, int], float], capacity: int = 1) -> None:
        self.success, self.capacity = success, capacity
        self.started: list[str] = []

    def prepare(self, jobs):
        pass

    def start(self, job):
        self.started.append(job.name)
        job.folder.mkdir(parents=True, exist_ok=True)
        (job.folder / CONFIG).write_text(json.dumps({"config": job.config.to_dict()}))
        return _Curve(self, job)

    def close(self):
        pass


class _Curve(InstantBackend):
    def __init__(self, backend, job):
        self.backend, self.job = backend, job

    def poll(self):
        epochs = self.job.epochs_done + 1
        success = partial(self.backend.success, self.job.config)
        write_rows(self.job.folder, epochs, success)
        return Outcome("done") if epochs == self.job.epochs else None

    def stop(self):
        self.poll = lambda: Outcome("lost", "stopped by a signal")
