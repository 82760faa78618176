"""Train the runs of a suite in parallel, and restart those that die.

The state of a run is its folder. A sweep can therefore be stopped and restarted, and several
sweeps on the same storage share the work.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from typing import Literal, NamedTuple, Protocol, TypeVar

from mrn.runs.layout import CHECKPOINTS
from mrn.runs.lock import RunLock, is_held
from mrn.runs.provenance import read_config
from mrn.sweeps.jobs import Job, current_status
from mrn.sweeps.overview import Overview, duration
from mrn.sweeps.watchdog import Watchdog
from mrn.utils.errors import RunError, UserError
from mrn.utils.files import UnreadableError, make_writable_folder
from mrn.utils.signals import InterruptHandler

T = TypeVar("T")
POLL_SECONDS = 0.2
UNREADABLE_TIMEOUT = 60.0
"""Seconds for which the metrics of a run may be unreadable before it counts as failed."""
MAX_RESTARTS = 3
"""Restarts of a killed run without progress before it counts as failed."""
STOP_TIMEOUT = 600.0
"""Seconds for which an interrupted sweep waits for its runs to save."""


class Outcome(NamedTuple):
    """Result of a run's process; `locked` if another process is training the run."""

    kind: Literal["done", "failed", "lost", "locked"]
    message: str = ""


class Handle(Protocol):
    """A running job."""

    def poll(self) -> Outcome | None:
        """Return the outcome, or None while it is running."""

    def has_started(self) -> bool:
        """Return whether it is training, rather than in a queue."""

    def stop(self) -> None:
        """Request that it saves and exits."""

    def kill(self) -> None:
        """End it immediately. It can be resumed from its last checkpoint."""


class Backend(Protocol):
    """Executes runs."""

    capacity: int
    """Maximum number of jobs in flight."""

    def prepare(self, jobs: Sequence[Job]) -> None:
        """Check that the jobs can be trained.

        Raises:
            UserError: They cannot; nothing was started.
        """

    def start(self, job: Job) -> Handle:
        """Train or resume a run.

        Raises:
            RunError: It cannot be started.
        """

    def close(self) -> None:
        """Release resources."""


def run_sweep(
    jobs: Sequence[Job], backend: Backend, overview: Overview, discard: bool = False
) -> None:
    """Train all unfinished jobs.

    Args:
        jobs: The runs.
        backend: Executes the runs.
        overview: Displays progress.
        discard: Delete the checkpoints of finished runs. They are only needed to train longer.

    Raises:
        UserError: The folder is not writable or the backend cannot use it; nothing was started.
        RunError: Some runs failed; all others are finished.
        Interrupted: A signal stopped the sweep; all runs have saved or were killed.
    """
    work = Sweep(jobs, backend, overview, discard)
    with open_sweep(work) as interruption:
        if work.waiting:
            make_writable_folder(work.waiting[0].root, "choose another --runs")
            backend.prepare(work.waiting)
        overview.begin(jobs, work.waiting)
        while (work.waiting or work.running) and not interruption.received:
            work.step()
    if work.failed:
        names = "; ".join(f"{job.name}: {message}" for job, message in work.failed.items())
        raise RunError(
            f"{len(work.failed)} of {len(jobs)} runs failed, the others are finished: {names}"
        )


@contextmanager
def open_sweep(work: "Sweep") -> Iterator[InterruptHandler]:
    """Display progress in this block and handle interrupts; afterwards stop all jobs.

    Raises:
        Interrupted: A signal arrived in the block; all runs have saved or were killed.
    """
    with work.overview, InterruptHandler("waiting for the runs to save") as interruption:
        with closing(work.backend):
            try:
                yield interruption
            finally:
                work.stop()
        if interruption.received:
            raise interruption.end("the same command")


class Sweep:
    """State of a sweep: waiting, running and failed jobs."""

    def __init__(
        self, jobs: Sequence[Job], backend: Backend, overview: Overview, discard: bool
    ) -> None:
        """Queue all unfinished jobs; the arguments are those of `run_sweep`."""
        self.backend, self.overview, self.discard = backend, overview, discard
        self.waiting = [job for job in jobs if not job.finished]
        for job in jobs:
            if job.finished:  # before this sweep
                self._discard_checkpoints(job)
        self.running: dict[Job, Handle] = {}
        self.failed: dict[Job, str] = {}
        self.lost: dict[Job, tuple[int, int]] = {}
        """Furthest epoch, and how often the run was lost since without progress."""
        self.unreadable_since: dict[Job, float] = {}
        self.watchdog = Watchdog()
        self.stalled: dict[Job, str] = {}
        """Runs that the watchdog killed, and why."""
        self.canceled: set[Job] = set()

    def step(self) -> None:
        """Start and collect jobs, update the display, and wait a moment."""
        self.start()
        self.collect()
        self.overview.refresh(self.running, len(self.waiting))
        time.sleep(POLL_SECONDS)

    def cancel(self, job: Job) -> None:
        """Drop a waiting job; let a running one save and exit without restarting it."""
        if job in self.running:
            self.canceled.add(job)
            self._attempt(job, self.running[job].stop)
        else:
            self.waiting.remove(job)

    def start(self) -> None:
        """Start waiting jobs up to the capacity of the backend."""
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
                self.unreadable_since.pop(job, None)
            except UserError as error:
                if isinstance(error, UnreadableError) and self._may_be_transient(job):
                    continue
                self.waiting.remove(job)
                self._fail(job, str(error))

    def collect(self) -> None:
        """Handle jobs that have ended, and kill those that make no progress."""
        check_progress = self.watchdog.is_due()
        for job, handle in list(self.running.items()):
            outcome = handle.poll()
            if outcome is None:
                if check_progress and job not in self.stalled and handle.has_started():
                    self._check_progress(job, handle)
                continue
            del self.running[job]
            self.watchdog.ended(job)
            if job in self.canceled:
                continue
            kind, message = _verify(job, outcome)
            message = self.stalled.pop(job, message)
            if kind == "lost":
                times = self._times_lost(job)
                if times <= MAX_RESTARTS:
                    self.overview.lost(job, message)
                    self.waiting.insert(0, job)
                    continue
                message = f"{message}, {times} times"
            if kind == "done":
                if message:
                    self.overview.warn(job, message)
                self._done(job)
            elif kind == "locked" or is_held(job.folder):  # another sweep was faster
                self.waiting.append(job)
            else:
                self._fail(job, message)

    def stop(self) -> None:
        """Wait until all runs have saved and exited; kill those that do not within the limit."""
        running = dict(self.running)
        for job, handle in running.items():
            self._attempt(job, handle.stop)
        deadline = time.monotonic() + STOP_TIMEOUT
        while running and time.monotonic() <= deadline:
            running = {k: v for k, v in running.items() if self._attempt(k, v.poll) is None}
            time.sleep(POLL_SECONDS if running else 0)
        for job, handle in running.items():
            self._attempt(job, handle.kill)
            self.overview.killed(job, f"it did not save within {duration(STOP_TIMEOUT)}")

    def _attempt(self, job: Job, action: Callable[[], T]) -> T | Outcome:
        """Call a method of a handle; an exception must not keep the other runs from stopping."""
        try:
            return action()
        except Exception as error:
            message = f"cannot stop it: {type(error).__name__}: {error}"
            self.overview.killed(job, message)
            return Outcome("lost", message)

    def _check_progress(self, job: Job, handle: Handle) -> None:
        """Kill a run that has stalled; it is resumed like any killed run."""
        seconds = self.watchdog.stalled_seconds(job)
        if seconds is not None and self._attempt(job, handle.kill) is None:
            self.stalled[job] = f"no new epoch in {duration(seconds)}"

    def _times_lost(self, job: Job) -> int:
        """Count how often a run was lost without progress; progress resets the count."""
        epochs = current_status(job).epochs
        furthest, times = self.lost.get(job, (epochs, 0))
        self.lost[job] = max(epochs, furthest), times + 1 if epochs <= furthest else 1
        return self.lost[job][1]

    def _may_be_transient(self, job: Job) -> bool:
        """Return whether unreadable metrics may be a short outage of the storage."""
        now = time.monotonic()
        return now - self.unreadable_since.setdefault(job, now) < UNREADABLE_TIMEOUT

    def _done(self, job: Job) -> None:
        self._discard_checkpoints(job)
        self.overview.done(job)

    def _discard_checkpoints(self, job: Job) -> None:
        """Delete the checkpoints of a run if requested, and if it is finished by its own settings.

        It may have been started or resumed for more epochs than this suite requires.
        """
        if not self.discard or not (job.folder / CHECKPOINTS).exists():
            return
        with suppress(UserError, OSError):  # skip runs that are locked or have no settings
            if replace(job, config=read_config(job.folder)).finished:
                with closing(RunLock(job.folder)):
                    shutil.rmtree(job.folder / CHECKPOINTS, ignore_errors=True)

    def _fail(self, job: Job, message: str) -> None:
        self.failed[job] = message
        self.overview.failed(job, message)


def _verify(job: Job, outcome: Outcome) -> Outcome:
    """Judge a run by its folder: it is done if complete, even if its process failed.

    A process can fail after the last epoch, or because another sweep finished the run.
    """
    if outcome.kind not in ("done", "failed"):
        return outcome
    try:
        finished = job.finished
    except UnreadableError as error:
        return Outcome("lost", str(error)) if outcome.kind == "done" else outcome
    except UserError as error:
        return Outcome("failed", str(error)) if outcome.kind == "done" else outcome
    if finished:
        return outcome._replace(kind="done")
    if outcome.kind == "failed":
        return outcome
    return Outcome(
        "failed",
        f"it ended, but {job.folder} is incomplete on this machine; put the folder on storage "
        "that all machines share",
    )
