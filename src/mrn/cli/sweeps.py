"""Commands for many runs: train a suite, draw figures, write a report."""

import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import tyro

from mrn.utils.console import console
from mrn.utils.device import ANY_GPU, default_threads, visible_gpus
from mrn.utils.errors import UserError
from mrn.utils.terminal import printable, show
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
    """Train all runs of a suite in parallel; repeat the command to resume.

    Args:
        suite: `paper-main`, `paper-ablation`, `paper-ablation-lr`, `fetch`, `quick`, or a custom
            suite in a TOML file (docs/sweeps.md).
        only: Train only runs whose names match a pattern such as `FetchPush/*-mrn/seed-?00`, for
            example to divide a suite between machines without shared storage.
        jobs: Parallel runs on this machine; by default one per GPU if the runs use one, else one
            per core.
        threads: CPU threads per run; by default the cores divided by the jobs, 1 on Ray. Results
            may depend on it in the last digits, so resumed runs keep it.
        backend: `local` processes, or a `ray` cluster.
        address: Address of the Ray cluster, `auto` for the one this machine belongs to; by default
            RAY_ADDRESS from the environment, else a new cluster on this machine.
        gpus: GPUs per run on Ray; 0.5 lets two runs share one. By default 1 if the cluster has
            GPUs and the run may use one.
        runs: Folder of all runs. The machines of a cluster must share it.
        discard_checkpoints: Delete the checkpoints of finished runs to save disk space. Such runs
            cannot be extended later.
        dry_run: Estimate time and disk space per task from a short probe, without training.
    """
    from mrn.sweeps.backends import LocalBackend
    from mrn.sweeps.jobs import plan_jobs
    from mrn.sweeps.overview import Overview
    from mrn.sweeps.probe import estimate_sweep
    from mrn.sweeps.ray_backend import RayBackend
    from mrn.sweeps.scheduler import run_sweep
    from mrn.sweeps.suites import find_suite

    check("jobs", jobs, PositiveInt | None)
    check("threads", threads, PositiveInt | None)
    check("gpus", gpus, NonNegativeFloat | None)
    _check_backend_options(backend, jobs=jobs, address=address, gpus=gpus)
    chosen = find_suite(suite)
    devices = visible_gpus() if any(run.device == ANY_GPU for run in chosen.configs()) else []
    if backend == "local":
        jobs, threads = divide_cores(jobs, threads, devices)
    threads = threads or 1
    planned = plan_jobs(chosen, runs, threads, only)
    if dry_run:

        def log(text: str) -> None:
            print(printable(text), file=sys.stderr)

        estimate = estimate_sweep(planned, jobs, discard_checkpoints, log)
        for part in estimate:
            console().print(part, soft_wrap=isinstance(part, str), highlight=False)
        return
    workers = LocalBackend(jobs, devices) if jobs else RayBackend(address, threads, gpus)
    run_sweep(planned, workers, Overview(), discard_checkpoints)
    show(f"Done. View the results: mrn report {shlex.quote(str(planned[0].root))}")


def divide_cores(jobs: int | None, threads: int | None, gpus: Sequence[str]) -> tuple[int, int]:
    """Return the number of parallel runs and the threads of each; by default all cores."""
    cores = default_threads()
    jobs = jobs or len(gpus) or cores
    return jobs, threads or max(cores // jobs, 1)


def _check_backend_options(backend: str, **given: object) -> None:
    """Raise for options that have no effect with the backend."""
    remedies = {
        "local": {"address": "add --backend ray", "gpus": "add --backend ray"},
        "ray": {"jobs": "the cluster's size decides; set --threads and --gpus per run"},
    }
    for name, remedy in remedies[backend].items():
        if given[name] is not None:
            raise UserError(f"--{name} has no effect with --backend {backend}: {remedy}")


def figures(
    runs: Annotated[Path, tyro.conf.arg(metavar="RUNS")],
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("figures"),
    x: Literal["steps", "episodes"] = "steps",
    baseline: str = "",
    force: bool = False,
) -> None:
    """Draw learning curves and aggregates as PDF and PNG, and write tables and metrics.

    Args:
        runs: Folder of runs, or of the CSVs that this command writes.
        out: Output folder.
        x: Unit of the x axis: environment `steps` or training `episodes`.
        baseline: Method that all others are compared with, for example
            `ddpg-mrn+learning_rate=0.002`; by default MRN with the same settings.
        force: Overwrite files that this command did not write.
    """
    from mrn.analysis.figures import draw_figures

    for path in draw_figures(runs, out, x, baseline, force):
        if path.suffix != ".csv" or path.name == "table.csv":
            show(path)


def report(
    runs: Annotated[Path, tyro.conf.arg(metavar="RUNS")],
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("report"),
    title: str = "",
    watch: bool = False,
    every: int = 30,
    baseline: str = "",
    force: bool = False,
) -> None:
    """Write a self-contained HTML page about all runs: curves, tables, settings, commands.

    Args:
        runs: Folder of runs, finished or not.
        out: Folder of the page, OUT/index.html.
        title: Title of the page; by default derived from the folder of runs.
        watch: Rewrite the page until all runs are finished; an open page reloads itself.
        every: Seconds between updates.
        baseline: Method that all others are compared with, for example
            `ddpg-mrn+learning_rate=0.002`; by default MRN with the same settings.
        force: Overwrite an index.html that this command did not write.
    """
    from mrn.analysis.report import NoRunsError, write_report

    check("every", every, PositiveInt)
    printed = ""
    while True:
        try:
            page, finished = write_report(runs, out, every if watch else 0, title, baseline, force)
            message = f"Wrote {page}"
        except NoRunsError as error:
            if not watch:
                raise
            finished, message = False, f"Waiting: {error}"
        if message != printed:
            show(message)
            printed = message
        if finished or not watch:
            return
        time.sleep(every)
