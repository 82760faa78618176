"""What a person sees while a sweep goes on: a table on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mrn.errors import UserError
from mrn.training.layout import LOCK, METRICS
from mrn.training.metrics import read_metrics

if TYPE_CHECKING:
    from mrn.experiments.sweep import Job

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

    def begin(self, jobs: Sequence["Job"], waiting: Sequence["Job"]) -> None:
        """These are all the runs, and those still to train."""
        self.jobs, self.total = jobs, len(jobs)
        self.finished = self.total - len(waiting)
        self.epochs_before = sum(job.epochs_done for job in jobs)
        self._say(f"{self.total} runs, {self.finished} of them finished already")

    def started(self, job: "Job") -> None:
        """A run was handed over."""
        done = job.epochs_done
        self._say(f"started   {job.name}" + (f", going on after epoch {done}" if done else ""))

    def done(self, job: "Job") -> None:
        """A run is finished."""
        self.finished += 1
        self._say(f"finished  {job.name}  success {_success(job)}  ({self.finished}/{self.total})")

    def lost(self, job: "Job", message: str) -> None:
        """The process of a run is gone; it will be started again."""
        self._say(f"lost      {job.name}: {message}; it goes on from where it was")

    def failed(self, job: "Job", message: str) -> None:
        """A run cannot go on."""
        self.failures += 1
        self._say(f"failed    {job.name}: {message}")

    def refresh(self, running: Collection["Job"], waiting: int) -> None:
        """Show where the running ones are."""
        if not self.console.is_terminal:
            return
        begun = [job for job in running if (job.folder / LOCK).exists()]
        waiting += len(running) - len(begun)  # in the cluster's queue
        table = Table("running", "epoch", "", "success", box=None, pad_edge=False)
        for job in begun[:SHOWN]:
            done, epochs = job.epochs_done, job.config.epochs or 1
            bar = ProgressBar(epochs, done, width=24)
            table.add_row(job.name, f"{done}/{epochs}", bar, _success(job))
        counts = f"{self.finished} done, {len(begun)} running, {waiting} waiting"
        if self.failures:
            counts += f", {self.failures} failed"
        self.live.update(Group(table, Text(f"{counts}; left {self._left()}")))

    def _left(self) -> str:
        """Time to go at the rate of epochs so far."""
        done = sum(min(job.epochs_done, job.config.epochs or 1) for job in self.jobs)
        todo = sum(job.config.epochs or 1 for job in self.jobs) - done
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


def _success(job: "Job") -> str:
    try:
        last = read_metrics(job.folder / METRICS)[-1]["success"]
    except (UserError, IndexError):
        return "-"
    return "-" if last is None else f"{last:.0%}"
