"""Progress display of a sweep: a live table on a terminal, plain lines elsewhere."""

import time
from collections.abc import Collection, Sequence

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mrn.runs.layout import LOCK
from mrn.sweeps.jobs import Job, RunStatus, current_status
from mrn.utils.console import run_console

MAX_SHOWN = 16
"""Maximum number of running runs in the table."""


class Overview:
    """Display of finished and running runs, their progress and the remaining time."""

    def __init__(self) -> None:
        """Prepare the display."""
        self.console = run_console()
        self.live = Live(console=self.console, refresh_per_second=2, transient=True)
        self.finished = self.failures = self.total = self.planned = self.epochs_before = 0
        self.epochs: dict[Job, int] = {}
        """Finished epochs of each run."""
        self.started_at = time.perf_counter()

    def begin(self, jobs: Sequence[Job], waiting: Sequence[Job]) -> None:
        """Register all runs and those still to train."""
        self.total, self.planned = len(jobs), sum(job.epochs for job in jobs)
        self.finished = self.total - len(waiting)
        # Updated for running jobs only, because the files of others do not change.
        self.epochs = {job: min(job.epochs_done, job.epochs) for job in jobs}
        self.epochs_before = sum(self.epochs.values())
        self._print(f"{self.total} runs, {self.finished} already finished")

    def started(self, job: Job) -> None:
        """Print that a run was started."""
        done = current_status(job).epochs
        self._print(f"started   {job.name}" + (f", resumed after epoch {done}" if done else ""))

    def done(self, job: Job) -> None:
        """Print that a run is finished."""
        self.finished += 1
        self.epochs[job] = job.epochs
        success = _success(current_status(job))
        self._print(f"finished  {job.name}  success {success}  ({self.finished}/{self.total})")

    def lost(self, job: Job, message: str) -> None:
        """Print that the process of a run died and will be restarted."""
        self._print(f"lost      {job.name}: {message}; it will be resumed")

    def killed(self, job: Job, message: str) -> None:
        """Print that a run did not stop as requested."""
        self._print(f"killed    {job.name}: {message}; it will be resumed from its last checkpoint")

    def warn(self, job: Job, message: str) -> None:
        """Print a problem of a run that is finished nevertheless."""
        self._print(f"warning   {job.name}: {message}")

    def failed(self, job: Job, message: str) -> None:
        """Print that a run failed."""
        self.failures += 1
        self._print(f"failed    {job.name}: {message}")

    def refresh(self, running: Collection[Job], waiting: int) -> None:
        """Update the live table."""
        if not self.console.is_terminal:
            return
        started = [job for job in running if (job.folder / LOCK).exists()]
        waiting += len(running) - len(started)  # in the cluster's queue
        table = Table("running", "epoch", "", "success", box=None, pad_edge=False)
        statuses = {job: current_status(job) for job in started}
        self.epochs |= {job: min(now.epochs, job.epochs) for job, now in statuses.items()}
        for job in started[:MAX_SHOWN]:
            done = statuses[job].epochs
            bar = ProgressBar(job.epochs, done, width=24)
            success = _success(statuses[job])
            table.add_row(job.name, f"{done}/{job.epochs}", bar, success)
        counts = f"{self.finished} done, {len(started)} running, {waiting} waiting"
        if self.failures:
            counts += f", {self.failures} failed"
        self.live.update(Group(table, Text(f"{counts}; time left: {self._time_left()}")))

    def _time_left(self) -> str:
        """Return the remaining time, extrapolated from the epochs so far."""
        done = sum(self.epochs.values())
        todo = self.planned - done
        if done <= self.epochs_before:
            return "-"
        rate = (done - self.epochs_before) / (time.perf_counter() - self.started_at)
        return duration(todo / rate)

    def _print(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)

    def __enter__(self) -> "Overview":
        """Start the live table."""
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the live table."""
        self.live.stop()


def duration(seconds: float) -> str:
    """Format a duration with a suitable unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def _success(status: RunStatus) -> str:
    return "-" if status.success is None else f"{status.success:.0%}"
