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

PLAIN_SECONDS = 60.0
"""Seconds between lines within an epoch, without a terminal."""
NOTEBOOK_SECONDS = 0.2
"""Seconds between updates of the line in a notebook."""
WIDE_TERMINAL = 110
"""Columns from which the bar has room for a title and the elapsed time."""


class TrainingProgress:
    """Progress bar over all cycles of a run, with a printed line per epoch."""

    def __init__(self, title: str, epochs: int, cycles: int, shown: bool) -> None:
        """Create the display; it prints nothing unless `shown`."""
        self.epochs, self.cycles, self.shown = epochs, cycles, shown
        self.first_epoch = 1  # of this process, for the remaining time
        self.console = run_console(quiet=not shown)
        self.started = self.shown_at = time.perf_counter()
        self.line: Any = None  # in a notebook, a line that is updated in place
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

    def finish_cycle(self, epoch: int, cycle: int, steps_per_second: float) -> None:
        """Advance the bar by one cycle; without a terminal, print a line every minute."""
        self.bar.update(self.task, advance=1, epoch=epoch, speed=f"{steps_per_second:,.0f}")
        if not self.shown or self.console.is_terminal:
            return
        interval = NOTEBOOK_SECONDS if self.console.is_jupyter else PLAIN_SECONDS
        if time.perf_counter() < self.shown_at + interval:
            return
        self.shown_at = time.perf_counter()
        text = f"epoch {epoch:>3}/{self.epochs}  cycle {cycle}/{self.cycles}  "
        self._show_within_epoch(f"{text}{steps_per_second:,.0f} steps/s")

    def _show_within_epoch(self, text: str) -> None:
        if not self.console.is_jupyter:
            self.print(text)
            return
        content = {"text/plain": text}
        if self.line is None:
            from IPython.display import display

            self.line = display(content, raw=True, display_id=True)
        else:
            self.line.update(content, raw=True)

    def finish_epoch(self, row: dict[str, Any]) -> None:
        """Print the metrics of an epoch and the estimated remaining time."""
        success = "-" if row["success"] is None else f"{row['success']:.0%}"
        self.bar.update(self.task, success=success)
        self.shown_at = time.perf_counter()
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
