"""Process pool with a progress bar that stops all workers on Ctrl-C."""

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
    """Run named tasks in parallel, each in a process with one thread.

    Tasks start in reverse order. No process outlives the call, even if it raises.

    Args:
        work: The functions to call, by name.
        workers: Number of processes.

    Returns:
        The results by name, in the order of `work`.

    Raises:
        RunError: A process was killed.
    """
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _initialize_worker)
    try:
        with kill_children_on_error():
            with _block_sigint():  # each `submit` may start a process
                names = {pool.submit(work[name]): name for name in reversed(list(work))}
            results = _collect(names)
    except BaseException as error:
        pool.shutdown(cancel_futures=True)
        if isinstance(error, BrokenProcessPool):
            raise RunError(
                "a process of the study was killed, possibly because it ran out of memory"
            ) from None
        raise
    pool.shutdown()
    return {name: results[name] for name in work}


def _initialize_worker() -> None:
    """Tie a worker to the lifetime of its parent, and limit it to one thread."""
    set_parent_death_signal(signal.SIGKILL)
    torch.set_num_threads(1)


@contextmanager
def _block_sigint() -> Iterator[None]:
    """Block SIGINT in processes started in this block, since a terminal sends it to all of them.

    Workers inherit the signal mask. This process receives the signal at the end of the block.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _collect(names: Mapping["Future[Result]", str]) -> dict[str, Result]:
    """Return the results by name, showing a progress bar on a terminal and a line per result."""
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
