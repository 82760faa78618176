"""Commands for one run: train, resume, evaluate."""

import argparse
import dataclasses
import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from mrn.agents import find_agent
from mrn.cli.goals import Goal
from mrn.config import Config, Schedule, groups_of, of_another_agent
from mrn.device import settle_memory
from mrn.errors import RunError, UserError
from mrn.recipes import USUAL
from mrn.replay import Memory
from mrn.team import launcher, leads, processes


def train_command(arguments: Sequence[str]) -> Callable[..., None]:
    """`mrn train`, with the settings of the agent that the arguments ask for."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--agent", nargs="?")
    parser.add_argument("--recipe", nargs="?")
    parser.add_argument("--config", nargs="?", type=Path)
    # Of other commands these are not options.
    early, rest = parser.parse_known_args(arguments if arguments[:1] == ["train"] else [])
    given = _read_config(early.config) if early.config else None
    agent = early.agent or (given.agent if given else Config.agent)
    usual = given.recipe if given else USUAL
    if given and (early.recipe or usual) != usual:
        raise UserError(
            f"{early.config} has the recipe {given.recipe!r} and settings for all that is in one: "
            "give --config or --recipe, not both"
        )
    groups = groups_of(agent, early.recipe or usual)
    for option in (word for word in rest if word.startswith("--")):
        name = option.strip("-").partition("=")[0].removeprefix("no-").replace("-", "_")
        if foreign := of_another_agent(name, agent):
            raise foreign
    if given:
        kept = ("schedule", "memory") + (("learning",) if given.agent == agent else ())
        groups |= {name: getattr(given, name) for name in kept}
    learner_settings = type(groups["learning"])

    def train(
        *,
        settings_of_run: Config,
        recipe: str = usual,
        schedule: Schedule = groups["schedule"],
        learning: learner_settings = groups["learning"],  # type: ignore[valid-type]
        memory: Memory = groups["memory"],
        config: Path | None = None,
        run_dir: Path | None = None,
        runs: Path = Path("runs"),
        resume: bool = False,
        track: str | None = None,
    ) -> None:
        """Train an agent on a task, by a recipe: `fast`, or `paper` for the paper's protocol.

        Args:
            settings_of_run: The settings of the run.
            recipe: Where settings that are not given come from (`mrn recipes`).
            schedule: How collection, updates and evaluation take turns.
            learning: The settings of the agent.
            memory: The replay buffer and hindsight.
            config: A run's config.json, whose settings are taken where none are given here.
            run_dir: The run's folder. By default RUNS/TASK/AGENT-CRITIC+RECIPE/seed-SEED.
            runs: The folder of all runs.
            resume: Go on with the run in that folder, if there is one.
            track: Show the run in `wandb` or `trackio`, too.
        """
        own = {"schedule": schedule, "learning": learning, "memory": memory}
        chosen = dataclasses.replace(settings_of_run, agent=agent, recipe=recipe, **own)
        _run(chosen, run_dir or runs / chosen.folder, resume, track)

    if given is not None:  # what has a default need not be given
        alike = find_agent(agent).uses_critic == find_agent(given.agent).uses_critic
        critic = given.critic if alike else Config.critic
        base = dataclasses.replace(given, agent=agent, critic=critic, **groups)
        train.__kwdefaults__ = {**(train.__kwdefaults__ or {}), "settings_of_run": base}
    return train


def _read_config(file: Path) -> Config:
    from mrn.training.about import read_about_file

    return read_about_file(file).config


def resume(
    run: Annotated[Path, tyro.conf.arg(metavar="RUN")],
    epochs: int | None = None,
    stop_at: float | None = None,
    device: str | None = None,
    threads: int | None = None,
    worker_timeout: float | None = None,
    checkpoint_every: int | None = None,
    track: str | None = None,
) -> None:
    """Go on with an interrupted run, as if it had never stopped, or train a finished one longer.

    Args:
        run: The run's folder.
        epochs: Epochs in all; by default as it was started.
        stop_at: End before that, after the first evaluation with at least this success rate.
        device: `cpu`, `cuda`, `cuda:N`, or `auto`; by default as it was started.
        threads: CPU threads; by default as it was started.
        worker_timeout: Seconds that a process of an environment may take to answer (with
            `--workers`); by default as it was started.
        checkpoint_every: Epochs between checkpoints; by default as it was started.
        track: Show the run in `wandb` or `trackio`; by default where it was shown until now.
    """
    from mrn.training.about import read_settings
    from mrn.zoo import find_entry

    if find_entry(run):
        raise UserError(
            f"{run} is there to act by: it has no checkpoint to go on from. `mrn train` trains "
            "another one"
        )
    asked = {"epochs": epochs, "stop_at": stop_at, "device": device, "threads": threads}
    asked |= {"worker_timeout": worker_timeout, "checkpoint_every": checkpoint_every}
    changes: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    if epochs is not None and stop_at is None:
        changes["stop_at"] = None  # who asks for more epochs does not mean to stop before them
    _run(dataclasses.replace(read_settings(run), **changes), run, True, track)


def _run(config: Config, folder: Path, resume: bool, track: str | None) -> None:
    from mrn.integrations.tracking import tracking
    from mrn.training.loop import run

    settle_memory()
    place = shlex.quote(str(folder))
    try:
        with tracking(track, folder) as trackers:
            run(config, folder, resume=resume, callbacks=trackers)
    except RunError as error:
        if error.resumable:
            command = f"{launcher(processes())} resume {place}"
            error.args = (f"{error}. When that is put right: {command}",)
        raise
    if leads():
        print(f"Done. Metrics and weights are in {folder}. Evaluate with: mrn eval {place}")


def evaluate(
    run: Annotated[str, tyro.conf.arg(metavar="RUN")],
    episodes: int = 100,
    engine: str = "auto",
    weights: str = "latest",
    seed: int = 0,
    device: str = "auto",
    threads: int | None = None,
    goal: Goal = None,
    json_: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> None:
    """Evaluate a trained agent, without noise, on either engine whatever engine trained it.

    Args:
        run: A run folder, a weights file, or `zoo:NAME` (`mrn zoo`).
        episodes: Episodes to play.
        engine: `envpool`, `gymnasium`, or `auto` (EnvPool where it has the task).
        weights: `latest`, or `best` (the epoch with the highest success rate).
        seed: Seed of the environments.
        device: `cpu`, `cuda`, `cuda:N`, or `auto`.
        threads: CPU threads for the simulation; by default all cores.
        goal: One of your choice for all episodes, such as 1.3,0.7,0.42; by default each draws its
            own.
        json_: Print the figures as JSON.
    """
    import mrn
    from mrn.training.agent import find_weights

    file = find_weights(run, weights)
    agent = mrn.load(file, device=device)
    result = agent.evaluate(episodes, seed, engine, threads, not json_, goal)
    interval = result.interval
    if json_:
        about = {"task": agent.shape.name, "weights": str(file), "seed": seed, "goal": goal}
        figures = dataclasses.asdict(result) | {"interval_95": [interval.low, interval.high]}
        print(json.dumps(about | figures, indent=2))
        return
    steps = "-" if result.steps_to_success is None else f"{result.steps_to_success:.1f}"
    print(f"{agent.shape.name}: {result.episodes} episodes on {result.engine}, seed {seed}, {file}")
    if goal is not None:
        print(f"goal                      {','.join(map(str, goal))}")
    print(
        f"success at the last step  {result.success:.1%}  "
        f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}], Wilson's 95 % interval"
    )
    print(f"success at any step       {result.success_any:.1%}")
    print(f"steps to success          {steps}")
