"""The `mrn` command: parses, calls, prints."""

import dataclasses
import importlib.util
import runpy
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.markup import escape
from rich.table import Table

from mrn.config import Config, check_range
from mrn.errors import RunError, UserError
from mrn.studies.commands import inspect, theory, toy
from mrn.tables import console

if TYPE_CHECKING:
    from mrn.experiments.sweep import Job


def train(
    config: Config,
    run_dir: Path | None = None,
    runs: Path = Path("runs"),
    resume: bool = False,
) -> None:
    """Train an agent on a task, by the paper's protocol unless told otherwise.

    Args:
        config: The settings.
        run_dir: The run's folder. By default RUNS/TASK/AGENT-CRITIC/seed-SEED.
        runs: The folder of all runs.
        resume: Go on with the run in that folder, if there is one.
    """
    _run(config, run_dir or runs / config.folder, resume)


def resume(
    run: Annotated[Path, tyro.conf.arg(metavar="RUN")],
    epochs: int | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Go on with an interrupted run, as if it had never stopped, or train a finished one longer.

    Args:
        run: The run's folder.
        epochs: Epochs in all; by default as it was started.
        device: `cpu`, `cuda`, `cuda:N`, or `auto`; by default as it was started.
        threads: CPU threads; by default as it was started.
    """
    from mrn.training.rundir import read_settings

    config = read_settings(run)
    changed = dataclasses.replace(
        config,
        epochs=epochs or config.epochs,
        device=device or config.device,
        threads=threads or config.threads,
    )
    _run(changed, run, True)


def _run(config: Config, folder: Path, resume: bool) -> None:
    from mrn.training.loop import run

    try:
        run(config, folder, resume=resume)
    except RunError as error:
        raise RunError(f"{error}. Once that is mended: mrn resume {folder}") from error
    print(f"Done. Metrics and weights are in {folder}. Evaluate with: mrn eval {folder}")


def evaluate(
    run: Annotated[str, tyro.conf.arg(metavar="RUN")],
    episodes: int = 100,
    engine: str = "auto",
    weights: str = "latest",
    seed: int = 0,
    device: str = "auto",
    threads: int | None = None,
) -> None:
    """Evaluate a trained agent, without noise, on either engine whatever engine trained it.

    Args:
        run: A run folder, or a weights file.
        episodes: Episodes to play.
        engine: `envpool`, `gymnasium`, or `auto` (EnvPool for the paper's tasks).
        weights: `latest`, or `best` (the epoch with the highest success rate).
        seed: Seed of the environments.
        device: `cpu`, `cuda`, `cuda:N`, or `auto`.
        threads: CPU threads for the simulation; by default all cores.
    """
    import mrn
    from mrn.training.evaluate import evaluate_agent

    agent = mrn.load(run, weights, device)
    result = evaluate_agent(agent, episodes, seed, engine, threads)
    steps = "-" if result.steps_to_success is None else f"{result.steps_to_success:.1f}"
    print(f"{agent.shape.name}: {result.episodes} episodes, seed {seed}")
    print(f"success at the last step  {result.success:.1%} +- {result.standard_error:.1%}")
    print(f"success at any step       {result.success_any:.1%}")
    print(f"steps to success          {steps}")


def tasks() -> None:
    """List the paper's tasks."""
    from mrn.envs import TASKS

    table = Table("task", "environment", "state", "goal", "action", "steps", "epochs")
    for task in TASKS.values():
        shape = task.shape
        sizes = (shape.state_dim, shape.goal_dim, shape.action_dim, shape.horizon, task.epochs)
        table.add_row(shape.name, shape.env_id, *map(str, sizes))
    _print(table)


def critics() -> None:
    """List the critic architectures, with their sizes on FetchPush."""
    from mrn.critics import CRITICS, make_critic
    from mrn.critics.base import count_parameters

    table = Table("critic", "Q(s, a, g)", "quasimetric", "parameters")
    for name, recipe in CRITICS.items():
        critic = make_critic(name, state_dim=25, action_dim=4, goal_dim=3)
        guarantee = "yes" if critic.is_quasimetric else "no"
        table.add_row(name, escape(recipe.formula), guarantee, f"{count_parameters(critic):,}")
    _print(table)


def bench() -> None:
    """Measure speed beside Stable-Baselines3, bare EnvPool and bare matrix products (5 minutes)."""
    root = Path(__file__).parents[2]
    if not (root / "benchmarks" / "__main__.py").exists():
        raise UserError("the benchmarks are part of the repository: run `make bench` in a clone")
    if importlib.util.find_spec("stable_baselines3") is None:
        raise UserError("the peer is missing: pip install 'mrn[bench]'")
    sys.path.insert(0, str(root))
    runpy.run_module("benchmarks", run_name="__main__")


def sweep(
    suite: Annotated[str, tyro.conf.arg(metavar="SUITE")],
    jobs: int | None = None,
    threads: int | None = None,
    backend: Literal["local", "ray"] = "local",
    address: str | None = None,
    gpus: float = 0.0,
    runs: Path = Path("runs"),
    discard_checkpoints: bool = False,
    dry_run: bool = False,
) -> None:
    """Train all runs of a suite, many at a time; run it again to go on with what is missing.

    Args:
        suite: `paper-main`, `paper-ablation`, `paper-ablation-lr`, `fetch`, `quick`, or the name of
            a TOML file of your own (docs/reproduce.md).
        jobs: Runs at a time on this machine; by default one for each core.
        threads: CPU threads of each run; by default the cores divided by the jobs, on Ray 1. A
            run's digits depend on it, so it is kept when a run goes on.
        backend: `local` processes, or a `ray` cluster.
        address: Of the Ray cluster, `auto` for the one this machine belongs to; by default one is
            started on this machine.
        gpus: GPUs of each run on Ray; a half lets two runs share one.
        runs: The folder of all runs. Machines of a cluster have to share it.
        discard_checkpoints: Remove the checkpoints of finished runs, which need the most disk and
            without which a run cannot be trained longer.
        dry_run: List the runs, with an estimate of time and disk from a short probe, and end.
    """
    from mrn.experiments.backends import LocalBackend, RayBackend
    from mrn.experiments.overview import Overview
    from mrn.experiments.suites import find_suite
    from mrn.experiments.sweep import plan, sweep
    from mrn.training.device import default_threads

    for name, value in (("jobs", jobs), ("threads", threads), ("gpus", gpus)):
        if value is not None:
            check_range(name, value)
    cores = default_threads()
    jobs = jobs or cores
    threads = threads or (max(cores // jobs, 1) if backend == "local" else 1)
    todo = plan(find_suite(suite), runs, threads)
    if dry_run:
        _print_estimate(todo, jobs)
        return
    place = LocalBackend(jobs) if backend == "local" else RayBackend(address, threads, gpus)
    sweep(todo, place, Overview(), discard_checkpoints)
    print(f"Done. See them with: mrn report {todo[0].folder.parents[2]}")


def figures(
    runs: Annotated[Path, tyro.conf.arg(metavar="RUNS")],
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("figures"),
) -> None:
    """Draw learning curves and aggregates as PDF and PNG, and write the tables and curves.

    Args:
        runs: A folder of runs, or of the CSVs that this command writes.
        out: Where to write.
    """
    from mrn.experiments.figures import draw_all

    for path in draw_all(runs, out):
        if path.suffix != ".csv" or path.name == "table.csv":
            print(path)


def report(
    runs: Annotated[Path, tyro.conf.arg(metavar="RUNS")],
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("report"),
    watch: bool = False,
    every: int = 30,
) -> None:
    """Write one self-contained page about all runs: curves, tables, settings, commands.

    Args:
        runs: A folder of runs, finished or not.
        out: The folder of the page, OUT/index.html.
        watch: Write it again and again until all runs are finished; an open page follows.
        every: Seconds between these.
    """
    from mrn.experiments.report import write_report

    check_range("every", every)
    page, finished = write_report(runs, out, every if watch else 0)
    print(f"Wrote {page}")
    while watch and not finished:
        time.sleep(every)
        page, finished = write_report(runs, out, every)


def _print_estimate(jobs: "list[Job]", at_a_time: int) -> None:
    from mrn.experiments.overview import duration
    from mrn.experiments.probe import estimate, makespan

    def note(text: str) -> None:
        print(f"probing {text}", file=sys.stderr)

    estimates = estimate(jobs, note)
    table = Table("run", "epochs", "done", "time left", "disk")
    for job, need in estimates.items():
        disk = f"{need.bytes / 2**20:,.0f} MiB"
        epochs = (str(job.config.epochs), str(job.epochs_done))
        table.add_row(job.name, *epochs, duration(need.seconds), disk)
    _print(table)
    total = sum(need.bytes for need in estimates.values())
    whole = duration(makespan(estimates, at_a_time))
    print(
        f"{len(jobs)} runs, {at_a_time} at a time: about {whole} if they do not slow each other "
        f"down, and {total / 2**30:.1f} GiB of disk (far less with --discard-checkpoints)"
    )


def _print(table: Table) -> None:
    console().print(table)


def main() -> None:
    """Run the command; what goes wrong is one message, and an exit code that says of which kind."""
    try:
        tyro.extras.subcommand_cli_from_dict(
            {
                "train": train,
                "resume": resume,
                "eval": evaluate,
                "sweep": sweep,
                "figures": figures,
                "report": report,
                "inspect": inspect,
                "tasks": tasks,
                "critics": critics,
                "bench": bench,
                "toy": toy,
                "theory": theory,
            },
            prog="mrn",
            description="Goal-conditioned reinforcement learning with metric critics.",
            config=(tyro.conf.PositionalRequiredArgs, tyro.conf.OmitArgPrefixes),
        )
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt as interrupt:
        print(interrupt, file=sys.stderr)
        sys.exit(128 + getattr(interrupt, "number", signal.SIGINT))
