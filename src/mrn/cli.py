"""The `mrn` command: parses, calls, prints."""

import dataclasses
import importlib.util
import runpy
import signal
import sys
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mrn.config import Config
from mrn.errors import RunError, UserError


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


def _print(table: Table) -> None:
    # Into a pipe or a file, rows are never folded.
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def main() -> None:
    """Run the command; what goes wrong is one message, and an exit code that says of which kind."""
    try:
        tyro.extras.subcommand_cli_from_dict(
            {
                "train": train,
                "resume": resume,
                "eval": evaluate,
                "tasks": tasks,
                "critics": critics,
                "bench": bench,
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
