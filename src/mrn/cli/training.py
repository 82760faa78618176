"""Commands for one run: train, resume, evaluate."""

import argparse
import dataclasses
import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from mrn.algorithms import find_algorithm
from mrn.cli.arguments import Goal
from mrn.config import Config, Schedule, other_algorithms_setting, resolve
from mrn.distributed import is_main, launch_command, world_size
from mrn.recipes import DEFAULT_RECIPE
from mrn.replay import ReplayConfig
from mrn.utils.device import tune_allocator
from mrn.utils.errors import RunError, UserError
from mrn.utils.renames import renamed


def train_command(arguments: Sequence[str]) -> Callable[..., None]:
    """`mrn train`, with the settings of the agent that the arguments ask for."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--algo", nargs="?")
    parser.add_argument("--recipe", nargs="?")
    parser.add_argument("--config", nargs="?", type=Path)
    # Of other commands these are not options.
    early, rest = parser.parse_known_args(arguments if arguments[:1] == ["train"] else [])
    given = _read_config(early.config) if early.config else None
    algo = early.algo or (given.algo if given else Config.algo)
    usual = given.recipe if given else DEFAULT_RECIPE
    if given and (early.recipe or usual) != usual:
        raise UserError(
            f"{early.config} has the recipe {given.recipe!r} and settings for all that is in one: "
            "give --config or --recipe, not both"
        )
    groups = resolve(algo, early.recipe or usual)
    settings = {item.name for group in groups.values() for item in dataclasses.fields(group)}
    for option in (word for word in rest if word.startswith("--")):
        name = option.strip("-").partition("=")[0].removeprefix("no-").replace("-", "_")
        if name not in settings and (message := renamed(name, flag=True)):
            raise UserError(message)
        if foreign := other_algorithms_setting(name, algo):
            raise foreign
    if given:
        kept = ("schedule", "replay") + (("algo_config",) if given.algo == algo else ())
        groups |= {name: getattr(given, name) for name in kept}
    algorithm_settings = type(groups["algo_config"])

    def train(
        *,
        settings_of_run: Config,
        recipe: str = usual,
        schedule: Schedule = groups["schedule"],
        algo_config: algorithm_settings = groups["algo_config"],  # type: ignore[valid-type]
        replay: ReplayConfig = groups["replay"],
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
            algo_config: Settings of the algorithm.
            replay: Replay buffer and hindsight relabeling.
            config: A run's config.json, whose settings are taken where none are given here.
            run_dir: The run's folder. By default RUNS/TASK/AGENT-CRITIC+RECIPE/seed-SEED.
            runs: The folder of all runs.
            resume: Go on with the run in that folder, if there is one.
            track: Show the run in `wandb` or `trackio`, too.
        """
        own = {"schedule": schedule, "algo_config": algo_config, "replay": replay}
        chosen = dataclasses.replace(settings_of_run, algo=algo, recipe=recipe, **own)
        _run(chosen, run_dir or runs / chosen.folder, resume, track)

    if given is not None:  # what has a default need not be given
        alike = find_algorithm(algo).uses_critic == find_algorithm(given.algo).uses_critic
        critic = given.critic if alike else Config.critic
        base = dataclasses.replace(given, algo=algo, critic=critic, **groups)
        train.__kwdefaults__ = {**(train.__kwdefaults__ or {}), "settings_of_run": base}
    return train


def _read_config(file: Path) -> Config:
    from mrn.runs.provenance import read_run_info_file

    return read_run_info_file(file).config


def resume(
    run: Annotated[Path, tyro.conf.arg(metavar="RUN")],
    epochs: int | None = None,
    stop_at: float | None = None,
    device: str | None = None,
    threads: int | None = None,
    env_timeout: float | None = None,
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
        env_timeout: Seconds that a process of an environment may take to answer (with
            `--async-envs`); by default as it was started.
        checkpoint_every: Epochs between checkpoints; by default as it was started.
        track: Show the run in `wandb` or `trackio`; by default where it was shown until now.
    """
    from mrn.runs.provenance import read_config
    from mrn.zoo import find_entry

    if find_entry(run):
        raise UserError(
            f"{run} is there to act by: it has no checkpoint to go on from. `mrn train` trains "
            "another one"
        )
    asked = {"epochs": epochs, "stop_at": stop_at, "device": device, "threads": threads}
    asked |= {"env_timeout": env_timeout, "checkpoint_every": checkpoint_every}
    changes: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    if epochs is not None and stop_at is None:
        changes["stop_at"] = None  # who asks for more epochs does not mean to stop before them
    _run(dataclasses.replace(read_config(run), **changes), run, True, track)


def _run(config: Config, folder: Path, resume: bool, track: str | None) -> None:
    from mrn.integrations.tracking import open_trackers
    from mrn.training.loop import run

    tune_allocator()
    place = shlex.quote(str(folder))
    try:
        with open_trackers(track, folder) as trackers:
            run(config, folder, resume=resume, callbacks=trackers)
    except RunError as error:
        if error.resumable:
            command = f"{launch_command(world_size())} resume {place}"
            error.args = (f"{error}. When that is put right: {command}",)
        raise
    if is_main():
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
    from mrn.agent import find_weights

    file = find_weights(run, weights)
    agent = mrn.load(file, device=device)
    result = agent.evaluate(episodes, seed, engine, threads, not json_, goal)
    interval = result.interval
    if json_:
        about = {"task": agent.spec.name, "weights": str(file), "seed": seed, "goal": goal}
        figures = dataclasses.asdict(result) | {"interval_95": [interval.low, interval.high]}
        print(json.dumps(about | figures, indent=2))
        return
    steps = "-" if result.steps_to_success is None else f"{result.steps_to_success:.1f}"
    print(f"{agent.spec.name}: {result.episodes} episodes on {result.engine}, seed {seed}, {file}")
    if goal is not None:
        print(f"goal                      {','.join(map(str, goal))}")
    print(
        f"success at the last step  {result.success:.1%}  "
        f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}], Wilson's 95 % interval"
    )
    print(f"success at any step       {result.success_any:.1%}")
    print(f"steps to success          {steps}")
