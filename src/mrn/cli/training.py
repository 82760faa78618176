"""Commands for one run: train, resume, evaluate."""

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import tyro

from mrn.agents import find_agent
from mrn.config import Config
from mrn.device import settle_memory
from mrn.errors import RunError


def train_command(arguments: Sequence[str]) -> Callable[..., None]:
    """`mrn train`, with the settings of the agent that the arguments ask for."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--agent", default=Config.agent)
    agent = find_agent(parser.parse_known_args(arguments)[0].agent)

    def train(
        config: Config,
        learning: agent.Settings,  # type: ignore[name-defined]
        run_dir: Path | None = None,
        runs: Path = Path("runs"),
        resume: bool = False,
    ) -> None:
        """Train an agent on a task, by the paper's protocol unless told otherwise.

        Args:
            config: The settings of the run.
            learning: The settings of the agent.
            run_dir: The run's folder. By default RUNS/TASK/AGENT-CRITIC/seed-SEED.
            runs: The folder of all runs.
            resume: Go on with the run in that folder, if there is one.
        """
        config = dataclasses.replace(config, learning=learning)
        _run(config, run_dir or runs / config.folder, resume)

    return train


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

    settle_memory()
    try:
        run(config, folder, resume=resume)
    except RunError as error:
        raise RunError(f"{error}. When that is put right: mrn resume {folder}") from error
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
