"""Commands for many runs: train them, draw them, report on them."""

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Literal

import tyro

from mrn.utils.device import ANY_GPU, default_threads, visible_gpus
from mrn.utils.errors import UserError
from mrn.utils.tables import console
from mrn.utils.validation import NonNegativeFloat, PositiveInt, check


def sweep(
    suite: Annotated[str, tyro.conf.arg(metavar="SUITE")],
    only: str = "*",
    jobs: int | None = None,
    threads: int | None = None,
    backend: Literal["local", "ray"] = "local",
    address: str | None = None,
    gpus: float | None = None,
    runs: Path = Path("runs"),
    discard_checkpoints: bool = False,
    dry_run: bool = False,
) -> None:
    """Train all runs of a suite, many at a time; run it again to go on with what is missing.

    Args:
        suite: `paper-main`, `paper-ablation`, `paper-ablation-lr`, `fetch`, `quick`, or the name of
            a TOML file of your own (docs/reproduce.md).
        only: Which of its runs, by a pattern of names such as `FetchPush/*-mrn/seed-?00`: to divide
            a suite between machines that share no folder, or to train some again.
        jobs: Runs at a time on this machine; by default one for each GPU that they use, or core.
        threads: CPU threads of each run; by default the cores divided by the jobs, on Ray 1. A
            run's digits may depend on it, so it is kept when a run goes on.
        backend: `local` processes, or a `ray` cluster.
        address: Of the Ray cluster, `auto` for the one this machine belongs to; by default that of
            the environment's RAY_ADDRESS, or one is started on this machine.
        gpus: GPUs of each run on Ray; a half lets two runs share one.
        runs: The folder of all runs. Machines of a cluster have to share it.
        discard_checkpoints: Remove the checkpoints of finished runs, which need the most disk and
            without which a run cannot be trained longer.
        dry_run: Say how much time and disk the runs of each task will take, from a short probe, and
            end.
    """
    from mrn.sweeps.backends import LocalBackend, RayBackend
    from mrn.sweeps.jobs import plan_jobs
    from mrn.sweeps.overview import Overview
    from mrn.sweeps.probe import estimate_sweep
    from mrn.sweeps.scheduler import run_sweep
    from mrn.sweeps.suites import find_suite

    check("jobs", jobs, PositiveInt | None)
    check("threads", threads, PositiveInt | None)
    check("gpus", gpus, NonNegativeFloat | None)
    _refuse_without_effect(backend, jobs=jobs, address=address, gpus=gpus)
    cores, chosen = default_threads(), find_suite(suite)
    cards = visible_gpus() if any(run.device in ANY_GPU for run in chosen.configs()) else []
    if backend == "local":
        jobs = jobs or len(cards) or cores
        threads = threads or max(cores // jobs, 1)
    threads = threads or 1
    todo = plan_jobs(chosen, runs, threads, only)
    if dry_run:
        needs = estimate_sweep(
            todo, jobs, discard_checkpoints, lambda text: print(text, file=sys.stderr)
        )
        for part in needs:
            console().print(part, soft_wrap=isinstance(part, str), highlight=False)
        return
    place = LocalBackend(jobs, cards) if jobs else RayBackend(address, threads, gpus or 0.0)
    run_sweep(todo, place, Overview(), discard_checkpoints)
    print(f"Done. See them with: mrn report {shlex.quote(str(todo[0].root))}")


def _refuse_without_effect(backend: str, **given: object) -> None:
    """Refuse options that the backend does not know, rather than let them have no effect."""
    remedies = {
        "local": {"address": "add --backend ray", "gpus": "add --backend ray"},
        "ray": {"jobs": "the cluster's size decides; --threads and --gpus are what a run asks for"},
    }
    for name, remedy in remedies[backend].items():
        if given[name] is not None:
            raise UserError(f"--{name} has no effect with --backend {backend}: {remedy}")


def figures(
    runs: Annotated[Path, tyro.conf.arg(metavar="RUNS")],
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("figures"),
) -> None:
    """Draw learning curves and aggregates as PDF and PNG, and write the tables and curves.

    Args:
        runs: A folder of runs, or of the CSVs that this command writes.
        out: Where to write.
    """
    from mrn.analysis.figures import draw_figures

    for path in draw_figures(runs, out):
        if path.suffix != ".csv" or path.name == "table.csv":
            print(path)


def report(
    runs: Annotated[Path, tyro.conf.arg(metavar="RUNS")],
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("report"),
    title: str = "",
    watch: bool = False,
    every: int = 30,
) -> None:
    """Write one self-contained page about all runs: curves, tables, settings, commands.

    Args:
        runs: A folder of runs, finished or not.
        out: The folder of the page, OUT/index.html.
        title: Of the page; by default made from the name of the folder.
        watch: Write it again and again until all runs are finished; an open page follows.
        every: Seconds between these.
    """
    from mrn.analysis.report import NoRunsError, write_report

    check("every", every, PositiveInt)
    told = ""
    while True:
        try:
            page, finished = write_report(runs, out, every if watch else 0, title)
            news = f"Wrote {page}"
        except NoRunsError as nothing:
            if not watch:
                raise
            finished, news = False, f"Waiting: {nothing}"
        if news != told:
            print(news, flush=True)
            told = news
        if finished or not watch:
            return
        time.sleep(every)
