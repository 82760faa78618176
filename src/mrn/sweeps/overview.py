"""What a person sees while a sweep goes on: a table on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Collection, Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mrn.runs.layout import LOCK
from mrn.sweeps.jobs import Job, RunStatus, current_status

SHOWN = 16
"""Running runs listed at most."""


class Overview:
    """How many runs are done, which are running and how far they are, and how long it will take."""

    def __init__(self) -> None:
        """Prepare the display."""
        self.console = Console(file=sys.stdout, highlight=False)
        self.live = Live(console=self.console, refresh_per_second=2, transient=True)
        self.finished = self.failures = self.total = 0
        self.started_at = time.perf_counter()

    def begin(self, jobs: Sequence[Job], waiting: Sequence[Job]) -> None:
        """These are all the runs, and those still to train."""
        self.total, self.planned = len(jobs), sum(job.epochs for job in jobs)
        self.finished = self.total - len(waiting)
        # By run; brought up to date for those that run here, as the others' files do not change.
        self.epochs = {job: min(job.epochs_done, job.epochs) for job in jobs}
        self.epochs_before = sum(self.epochs.values())
        self._say(f"{self.total} runs, {self.finished} of them finished already")

    def started(self, job: Job) -> None:
        """A run was handed over."""
        done = current_status(job).epochs
        self._say(f"started   {job.name}" + (f", going on after epoch {done}" if done else ""))

    def done(self, job: Job) -> None:
        """A run is finished."""
        self.finished += 1
        self.epochs[job] = job.epochs
        success = _success(current_status(job))
        self._say(f"finished  {job.name}  success {success}  ({self.finished}/{self.total})")

    def lost(self, job: Job, message: str) -> None:
        """The process of a run is gone; it will be started again."""
        self._say(f"lost      {job.name}: {message}; it goes on from where it was")

    def failed(self, job: Job, message: str) -> None:
        """A run cannot go on."""
        self.failures += 1
        self._say(f"failed    {job.name}: {message}")

    def refresh(self, running: Collection[Job], waiting: int) -> None:
        """Show where the running ones are."""
        if not self.console.is_terminal:
            return
        begun = [job for job in running if (job.folder / LOCK).exists()]
        waiting += len(running) - len(begun)  # in the cluster's queue
        table = Table("running", "epoch", "", "success", box=None, pad_edge=False)
        standings = {job: current_status(job) for job in begun}
        self.epochs |= {job: min(now.epochs, job.epochs) for job, now in standings.items()}
        for job in begun[:SHOWN]:
            done = standings[job].epochs
            bar = ProgressBar(job.epochs, done, width=24)
            success = _success(standings[job])
            table.add_row(job.name, f"{done}/{job.epochs}", bar, success)
        counts = f"{self.finished} done, {len(begun)} running, {waiting} waiting"
        if self.failures:
            counts += f", {self.failures} failed"
        self.live.update(Group(table, Text(f"{counts}; left {self._left()}")))

    def _left(self) -> str:
        """Time to go at the rate of epochs so far."""
        done = sum(self.epochs.values())
        todo = self.planned - done
        if done <= self.epochs_before:
            return "-"
        rate = (done - self.epochs_before) / (time.perf_counter() - self.started_at)
        return duration(todo / rate)

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)

    def __enter__(self) -> "Overview":
        """Show the table."""
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the table away."""
        self.live.stop()


def duration(seconds: float) -> str:
    """As a person says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def _success(standing: RunStatus) -> str:
    return "-" if standing.success is None else f"{standing.success:.0%}"
