"""Trains the runs of a suite, many at a time, and survives what happens to them.

All that a sweep knows of a run is its folder, so that it can be stopped and started again, and
so that several sweeps over the same storage share the work.
"""

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from mrn.config import Config
from mrn.errors import RunError
from mrn.experiments.overview import Overview
from mrn.experiments.suites import Suite
from mrn.signals import Interruption
from mrn.training.layout import CHECKPOINTS, CONFIG, METRICS
from mrn.training.lock import is_held
from mrn.training.metrics import read_metrics
from mrn.training.rundir import check_settings, read_settings

POLL_SECONDS = 0.2
LOST_LIMIT = 3
"""How often a run is started again after its process was killed or its machine went away."""


@dataclass(frozen=True)
class Job:
    """A run to train, and where."""

    config: Config
    folder: Path
    name: str

    @property
    def finished(self) -> bool:
        """Whether all its epochs are there."""
        return self.epochs_done >= (self.config.epochs or 1)

    @property
    def epochs_done(self) -> int:
        """Rows of its metrics."""
        file = self.folder / METRICS
        return len(read_metrics(file)) if file.exists() else 0


class Outcome(NamedTuple):
    """How a process of a run ended."""

    kind: Literal["done", "failed", "lost"]
    message: str = ""


class Handle(Protocol):
    """A run on its way."""

    def poll(self) -> Outcome | None:
        """How it ended; None while it goes on."""

    def stop(self) -> None:
        """Ask it to save and end."""


class Backend(Protocol):
    """Where runs are trained."""

    capacity: int
    """Runs to hand over at a time."""

    def start(self, job: Job) -> Handle:
        """Train a run, or go on with it."""

    def close(self) -> None:
        """Give back what it holds."""


def plan(suite: Suite, runs: Path, threads: int) -> list[Job]:
    """The jobs of a suite below the folder of all runs.

    A run that was begun keeps its number of threads: sums are rounded differently by another.

    Raises:
        UserError: A folder holds a run of other settings, or is damaged.
    """
    jobs = []
    for config in suite.configs():
        folder = (runs / suite.folder / config.folder).absolute()
        begun = read_settings(folder) if (folder / CONFIG).exists() else None
        if begun is not None:
            check_settings(begun, config, str(folder))
        chosen = config.threads or (begun and begun.threads) or threads
        job = Job(replace(config, threads=chosen), folder, str(config.folder))
        _ = job.finished  # reads its metrics: damaged ones are noticed before anything starts
        jobs.append(job)
    return jobs


def sweep(jobs: Sequence[Job], backend: Backend, overview: Overview, discard: bool = False) -> None:
    """Train all jobs that are not finished.

    Args:
        jobs: The runs.
        backend: Where they are trained.
        overview: Shows how it goes.
        discard: Remove the checkpoints of finished runs, which only training longer needs.

    Raises:
        RunError: Some failed; all others are finished.
        Interrupted: The sweep was asked to end; all runs have saved.
    """
    waiting = [job for job in jobs if not job.finished]
    overview.begin(jobs, waiting)
    running: dict[Job, Handle] = {}
    failed: dict[Job, str] = {}
    lost: dict[Job, int] = {}
    with overview, Interruption("waiting for the runs to save") as interruption:
        try:
            while (waiting or running) and not interruption.received:
                for job in list(waiting):
                    if len(running) >= backend.capacity:
                        break
                    if job.finished:  # by another sweep
                        waiting.remove(job)
                        overview.done(job)
                    elif not is_held(job.folder):
                        waiting.remove(job)
                        running[job] = backend.start(job)
                        overview.started(job)
                for job, handle in list(running.items()):
                    outcome = handle.poll()
                    if outcome is None:
                        continue
                    del running[job]
                    kind, message = _judge(job, outcome)
                    if kind == "lost":
                        lost[job] = lost.get(job, 0) + 1
                        if lost[job] <= LOST_LIMIT:
                            overview.lost(job, message)
                            waiting.insert(0, job)
                            continue
                        message = f"{message}, {lost[job]} times"
                    if kind == "done":
                        if discard:
                            shutil.rmtree(job.folder / CHECKPOINTS, ignore_errors=True)
                        overview.done(job)
                    elif is_held(job.folder):  # another sweep was faster
                        waiting.append(job)
                    else:
                        failed[job] = message
                        overview.failed(job, message)
                overview.refresh(running, len(waiting))
                time.sleep(POLL_SECONDS)
        finally:
            _stop(running)
            backend.close()
        if interruption.received:
            raise interruption.end("the same command")
    if failed:
        names = "; ".join(f"{job.name}: {message}" for job, message in failed.items())
        raise RunError(
            f"{len(failed)} of {len(jobs)} runs failed, the others are finished: {names}"
        )


def _judge(job: Job, outcome: Outcome) -> Outcome:
    """Believe a run that says it is done only if its folder says so too."""
    if outcome.kind == "done" and not job.finished:
        return Outcome("failed", f"it ended, but {job.folder} is not complete here; is that folder "
                       "on storage that all machines share?")  # fmt: skip
    return outcome


def _stop(running: dict[Job, Handle]) -> None:
    """Ask all to end, and wait until they have saved."""
    for handle in running.values():
        handle.stop()
    for handle in running.values():
        while handle.poll() is None:
            time.sleep(POLL_SECONDS)
