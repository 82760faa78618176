"""Work for several processes: it shows how far it is, and Ctrl-C ends all of it at once."""

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mrn.utils.errors import RunError
from mrn.utils.signals import kill_children_on_error, set_parent_death_signal

Result = TypeVar("Result")


def run_all(work: Mapping[str, Callable[[], Result]], workers: int) -> dict[str, Result]:
    """Do all the work, by its names, each piece in a process with one thread.

    The last ones are started first. On leaving, however that comes about, no process is left.

    Raises:
        RunError: A process was killed.
    """
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _prepare)
    try:
        with kill_children_on_error():
            with _without_ctrl_c():  # each `submit` may start a process
                names = {pool.submit(work[name]): name for name in reversed(list(work))}
            results = _collect(names)
    except BaseException as error:
        pool.shutdown(cancel_futures=True)
        if isinstance(error, BrokenProcessPool):
            raise RunError(
                "a process of the study was killed; was there too little memory?"
            ) from None
        raise
    pool.shutdown()
    return {name: results[name] for name in work}


def _prepare() -> None:
    """In each process: do not outlive the study, and leave the other cores to the others."""
    set_parent_death_signal(signal.SIGKILL)
    torch.set_num_threads(1)


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Processes started in this block never see Ctrl-C: a terminal sends it to all of them.

    They inherit what is blocked. Here it arrives at the end of the block.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _collect(names: Mapping["Future[Result]", str]) -> dict[str, Result]:
    """The results by name, with a bar on a terminal and a line for each elsewhere."""
    console = Console(file=sys.stderr, highlight=False)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    results = {}
    with bar:
        row = bar.add_task("networks trained", total=len(names))
        for future in as_completed(names):
            name = names[future]
            results[name] = future.result()
            bar.advance(row)
            done = f"({len(results)}/{len(names)})"
            console.print(f"trained {name} {done}", markup=False, soft_wrap=True)
    return results
