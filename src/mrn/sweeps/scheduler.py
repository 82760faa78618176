"""Trains the runs of a suite, many at a time, and survives what happens to them.

All that a sweep knows of a run is its folder, so that it can be stopped and started again, and
so that several sweeps over the same storage share the work.
"""

import shutil
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Literal, NamedTuple, Protocol

from mrn.runs.layout import CHECKPOINTS
from mrn.runs.lock import RunLock, is_held
from mrn.runs.provenance import read_config
from mrn.sweeps.jobs import Job, current_status
from mrn.sweeps.overview import Overview
from mrn.utils.errors import RunError, UserError
from mrn.utils.files import UnreadableError, make_writable_folder
from mrn.utils.signals import InterruptHandler

POLL_SECONDS = 0.2
UNREADABLE_TIMEOUT = 60.0
"""How long metrics of a run may be unreadable before it counts as failed."""
MAX_RESTARTS = 3
"""How often a run that was killed, or whose machine went away, is started again in vain."""


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
        """Train a run, or go on with it.

        Raises:
            RunError: It cannot even be started.
        """

    def close(self) -> None:
        """Give back what it holds."""


def run_sweep(
    jobs: Sequence[Job], backend: Backend, overview: Overview, discard: bool = False
) -> None:
    """Train all jobs that are not finished.

    Args:
        jobs: The runs.
        backend: Where they are trained.
        overview: Shows how it goes.
        discard: Remove the checkpoints of finished runs, which only training longer needs.

    Raises:
        UserError: The folder cannot be written to; nothing was started.
        RunError: Some failed; all others are finished.
        Interrupted: The sweep was asked to end; all runs have saved.
    """
    work = _Sweep(jobs, backend, overview, discard)
    if work.waiting:
        make_writable_folder(work.waiting[0].root, "choose another --runs")
    overview.begin(jobs, work.waiting)
    with overview, InterruptHandler("waiting for the runs to save") as interruption:
        try:
            while (work.waiting or work.running) and not interruption.received:
                work.start()
                work.collect()
                overview.refresh(work.running, len(work.waiting))
                time.sleep(POLL_SECONDS)
        finally:
            _stop(work.running)
            backend.close()
        if interruption.received:
            raise interruption.end("the same command")
    if work.failed:
        names = "; ".join(f"{job.name}: {message}" for job, message in work.failed.items())
        raise RunError(
            f"{len(work.failed)} of {len(jobs)} runs failed, the others are finished: {names}"
        )


class _Sweep:
    """Which runs wait, which are on their way, and which have failed."""

    def __init__(
        self, jobs: Sequence[Job], backend: Backend, overview: Overview, discard: bool
    ) -> None:
        self.backend, self.overview, self.discard = backend, overview, discard
        self.waiting = [job for job in jobs if not job.finished]
        for job in jobs:
            if job.finished:  # before this sweep
                self._tidy(job)
        self.running: dict[Job, Handle] = {}
        self.failed: dict[Job, str] = {}
        self.lost: dict[Job, tuple[int, int]] = {}
        """How far it was when it was lost, and how often it was since it was no further."""
        self.unread: dict[Job, float] = {}
        """Since when its metrics cannot be read."""

    def start(self) -> None:
        """Hand over as many runs as there is room for."""
        for job in list(self.waiting):
            if len(self.running) >= self.backend.capacity:
                break
            try:
                if job.finished:  # by another sweep
                    self.waiting.remove(job)
                    self._done(job)
                elif not is_held(job.folder):
                    self.running[job] = self.backend.start(job)
                    self.waiting.remove(job)
                    self.overview.started(job)
                self.unread.pop(job, None)
            except UserError as error:
                if isinstance(error, UnreadableError) and self._may_pass(job):
                    continue
                self.waiting.remove(job)
                self._fail(job, str(error))

    def collect(self) -> None:
        """See which have ended, and how."""
        for job, handle in list(self.running.items()):
            outcome = handle.poll()
            if outcome is None:
                continue
            del self.running[job]
            kind, message = _judge(job, outcome)
            if kind == "lost":
                times = self._times_lost(job)
                if times <= MAX_RESTARTS:
                    self.overview.lost(job, message)
                    self.waiting.insert(0, job)
                    continue
                message = f"{message}, {times} times"
            if kind == "done":
                self._done(job)
            elif is_held(job.folder):  # another sweep was faster
                self.waiting.append(job)
            else:
                self._fail(job, message)

    def _times_lost(self, job: Job) -> int:
        """How often it was lost without getting further: one that does may be lost any time."""
        epochs = current_status(job).epochs
        furthest, times = self.lost.get(job, (epochs, 0))
        self.lost[job] = max(epochs, furthest), times + 1 if epochs <= furthest else 1
        return self.lost[job][1]

    def _may_pass(self, job: Job) -> bool:
        """Whether what cannot be read may be storage that is away for a moment."""
        now = time.monotonic()
        return now - self.unread.setdefault(job, now) < UNREADABLE_TIMEOUT

    def _done(self, job: Job) -> None:
        self._tidy(job)
        self.overview.done(job)

    def _tidy(self, job: Job) -> None:
        """Remove the checkpoints, if asked to, of a run that is finished by its own settings, too.

        It may have been begun, or gone on with, for longer than this suite asks for.
        """
        if not self.discard or not (job.folder / CHECKPOINTS).exists():
            return
        with suppress(UserError, OSError):  # it is held, or says nothing of itself: left alone
            if replace(job, config=read_config(job.folder)).finished:
                with closing(RunLock(job.folder)):
                    shutil.rmtree(job.folder / CHECKPOINTS, ignore_errors=True)

    def _fail(self, job: Job, message: str) -> None:
        self.failed[job] = message
        self.overview.failed(job, message)


def _judge(job: Job, outcome: Outcome) -> Outcome:
    """Believe a run that says it is done only if its folder says so too."""
    try:
        finished = outcome.kind != "done" or job.finished
    except UnreadableError as error:
        return Outcome("lost", str(error))
    except UserError as error:
        return Outcome("failed", str(error))
    if not finished:
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
