"""Progress display: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from mrn.replay import Episodes
from mrn.utils.console import run_console
from mrn.utils.terminal import printable

WIDE_TERMINAL = 110
"""Columns from which the bar has room for a title and the elapsed time."""


class TrainingProgress:
    """Progress bar over all cycles of a run, with a printed line per epoch."""

    def __init__(self, title: str, epochs: int, cycles: int, shown: bool) -> None:
        """Create the display; it prints nothing unless `shown`."""
        self.epochs, self.cycles, self.shown = epochs, cycles, shown
        self.first_epoch = 1  # of this process, for the remaining time
        self.console = run_console(quiet=not shown)
        self.started = time.perf_counter()
        wide = self.console.width >= WIDE_TERMINAL
        self.bar = Progress(
            *([TextColumn("[bold]{task.description}")] if wide else []),
            BarColumn(bar_width=None if wide else 16),
            TextColumn("epoch {task.fields[epoch]}/{task.fields[epochs]}"),
            TextColumn("success {task.fields[success]}"),
            TextColumn("{task.fields[speed]} steps/s"),
            *([TimeElapsedColumn()] if wide else []),
            TextColumn("left"),
            TimeRemainingColumn(compact=not wide),
            console=self.console,
            disable=not (shown and self.console.is_terminal),
        )
        title = escape(printable(title))
        self.task = self.bar.add_task(
            title, total=epochs * cycles, epoch=1, epochs=epochs, success="-", speed="-"
        )

    def print(self, text: str) -> None:
        """Print a line above the bar."""
        self.console.print(text, markup=False, soft_wrap=True)

    def resume(self, epoch: int, cycle: int) -> None:
        """Move the bar to the position of a resumed run."""
        self.first_epoch = epoch
        self.bar.update(self.task, completed=(epoch - 1) * self.cycles + cycle, epoch=epoch)
        self.print(f"resumed at epoch {epoch}, cycle {cycle}")

    def finish_cycle(self, epoch: int, steps_per_second: float) -> None:
        """Advance the bar by one cycle."""
        self.bar.update(self.task, advance=1, epoch=epoch, speed=f"{steps_per_second:,.0f}")

    def finish_epoch(self, row: dict[str, Any]) -> None:
        """Print the metrics of an epoch and the estimated remaining time."""
        success = "-" if row["success"] is None else f"{row['success']:.0%}"
        self.bar.update(self.task, success=success)
        elapsed = time.perf_counter() - self.started
        left = elapsed / (row["epoch"] - self.first_epoch + 1) * (self.epochs - row["epoch"])
        self.print(
            f"epoch {row['epoch']:>3}/{self.epochs}  success {success:>4}  "
            f"{row['env_steps']:>9,} steps  {row['steps_per_second']:,.0f} steps/s  "
            f"{left / 60:.1f} min left"
        )

    def __enter__(self) -> "TrainingProgress":
        """Show the bar."""
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bar."""
        self.bar.stop()


def print_line(text: str, shown: bool = True) -> None:
    """Print a line if `shown`."""
    run_console(quiet=not shown).print(text, markup=False, soft_wrap=True)


def with_progress_bar(rollouts: Iterable[Episodes], episodes: int) -> Iterator[Episodes]:
    """Yield the rollouts, with a progress bar on a terminal."""
    columns = (TextColumn("episodes"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(file=sys.stderr)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=episodes)
        for batch in rollouts:
            bar.advance(task, len(batch.length))
            yield batch
