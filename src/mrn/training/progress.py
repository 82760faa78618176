"""What a person sees while a run goes on: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from mrn.replay import Episodes


class TrainingProgress:
    """One bar over all cycles of a run, and a line for each finished epoch."""

    def __init__(self, title: str, epochs: int, cycles: int, shown: bool) -> None:
        """Prepare the display; `shown` False makes it silent."""
        self.epochs, self.cycles = epochs, cycles
        self.first = 1  # epoch of this process
        self.console = Console(file=sys.stdout, highlight=False, quiet=not shown)
        self.started = time.perf_counter()
        # On 80 columns the title would leave nothing for the bar; the first line has it.
        wide = self.console.width >= 110
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
        self.row = self.bar.add_task(
            title, total=epochs * cycles, epoch=1, epochs=epochs, success="-", speed="-"
        )

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self.console.print(text, markup=False, soft_wrap=True)

    def resume(self, epoch: int, cycle: int) -> None:
        """The run goes on, after so many cycles of an epoch."""
        self.first = epoch
        self.bar.update(self.row, completed=(epoch - 1) * self.cycles + cycle, epoch=epoch)
        self.say(f"resumed at epoch {epoch}, cycle {cycle}")

    def cycle(self, epoch: int, steps_per_second: float) -> None:
        """A cycle is done."""
        self.bar.update(self.row, advance=1, epoch=epoch, speed=f"{steps_per_second:,.0f}")

    def epoch(self, row: dict[str, Any]) -> None:
        """An epoch is done, with its row of metrics."""
        success = "-" if row["success"] is None else f"{row['success']:.0%}"
        self.bar.update(self.row, success=success)
        spent = time.perf_counter() - self.started
        left = spent / (row["epoch"] - self.first + 1) * (self.epochs - row["epoch"])
        self.say(
            f"epoch {row['epoch']:>3}/{self.epochs}  success {success:>4}  "
            f"{row['env_steps']:>9,} steps  {row['steps_per_second']:,.0f} steps/s  "
            f"{left / 60:.1f} min left"
        )

    def __enter__(self) -> "TrainingProgress":
        """Show the bar."""
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bar away."""
        self.bar.stop()


def print_line(text: str, shown: bool = True) -> None:
    """Print a line, where anything is to be shown."""
    Console(file=sys.stdout, highlight=False, quiet=not shown).print(
        text, markup=False, soft_wrap=True
    )


def with_progress_bar(played: Iterable[Episodes], episodes: int) -> Iterator[Episodes]:
    """The same episodes, with a bar on a terminal while they are played."""
    columns = (TextColumn("episodes"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(file=sys.stderr)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        row = bar.add_task("", total=episodes)
        for some in played:
            bar.advance(row, len(some.length))
            yield some
