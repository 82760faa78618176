"""Commands for a single run: `mrn train`, `mrn resume` and `mrn eval`."""

import argparse
import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from mrn.algorithms import find_algorithm, other_algorithms_setting
from mrn.cli.arguments import Goal
from mrn.config import Config, resolve
from mrn.distributed import command_here, is_main, world_size
from mrn.recipes import DEFAULT_RECIPE, TUNED
from mrn.replay import ReplayConfig
from mrn.schedule import Schedule
from mrn.utils.device import tune_allocator
from mrn.utils.errors import RunError, UserError
from mrn.utils.renames import renamed
from mrn.utils.terminal import show


def train_command(arguments: Sequence[str]) -> Callable[..., None]:
    """Return the `train` command, with the settings of the algorithm named in `arguments`.

    Raises:
        UserError: The algorithm, the recipe or the configuration file does not exist, or a flag
            was renamed or belongs to another algorithm.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--algo", nargs="?")
    parser.add_argument("--recipe", nargs="?")
    parser.add_argument("--config", nargs="?", type=Path)
    parser.add_argument("--trust-code", action="store_true")
    # Other commands do not have these options.
    known, rest = parser.parse_known_args(arguments if arguments[:1] == ["train"] else [])
    base = _read_config(known.config, known.trust_code) if known.config else None
    algo = known.algo or (base.algo if base else Config.algo)
    default_recipe = base.recipe if base else DEFAULT_RECIPE
    if base and (known.recipe or default_recipe) != default_recipe:
        raise UserError(
            f"{known.config} uses the recipe {base.recipe!r} and already sets everything that a "
            "recipe sets: pass --config or --recipe, not both"
        )
    # Options may have values, which are no tasks: the parsed command has the task to compare with.
    task = base.task if base else next((word for word in rest[1:] if not word.startswith("-")), "")
    groups = resolve(algo, known.recipe or default_recipe, task)
    settings = {item.name for group in groups.values() for item in dataclasses.fields(group)}
    for option in (word for word in rest if word.startswith("--")):
        name = option.strip("-").partition("=")[0].removeprefix("no-").replace("-", "_")
        if name not in settings and (message := renamed(name, flag=True)):
            raise UserError(message)
        if error := other_algorithms_setting(name, algo) or _abbreviated(name, settings):
            raise error
    if base:
        kept = ("schedule", "replay") + (("algo_config",) if base.algo == algo else ())
        groups |= {name: getattr(base, name) for name in kept}
    algorithm_settings = type(groups["algo_config"])

    # The parameter names of groups are their headings in the help; flags have no prefix.
    def train(
        *,
        run: Config,
        recipe: str = default_recipe,
        schedule: Schedule = groups["schedule"],
        algorithm: algorithm_settings = groups["algo_config"],  # type: ignore[valid-type]
        replay: ReplayConfig = groups["replay"],
        config: Path | None = None,
        run_dir: Path | None = None,
        runs: Path = Path("runs"),
        resume: bool = False,
        track: str | None = None,
        trust_code: bool = known.trust_code,
    ) -> None:
        """Train an agent on a task.

        Args:
            run: What to train, and where.
            recipe: Preset for all other settings: `fast`, `paper` or `tuned` (`mrn recipes`).
            schedule: How rollouts, gradient steps and evaluation alternate.
            algorithm: Settings of the learning algorithm.
            replay: Replay buffer and hindsight relabeling.
            config: The config.json of a run, which replaces the defaults of all settings.
            run_dir: Run folder. Defaults to RUNS/TASK/ALGO-CRITIC+RECIPE/seed-SEED.
            runs: Parent folder of all runs.
            resume: Resume the run in the run folder, if there is one.
            track: Also log to `wandb` or `trackio`.
            trust_code: Import the custom modules that the file of `--config` names.
        """
        if recipe == TUNED and base is None and run.task != task:
            raise UserError(
                f"the recipe {TUNED!r} depends on the task, so the task must come first: "
                f"mrn train {run.task} --recipe {TUNED}"
            )
        chosen = dataclasses.replace(
            run, algo=algo, recipe=recipe, schedule=schedule, algo_config=algorithm, replay=replay
        )
        _run(chosen, run_dir or runs / chosen.folder, resume, track)

    if base is not None:  # with a default, tyro no longer requires a task
        same_kind = find_algorithm(algo).uses_critic == find_algorithm(base.algo).uses_critic
        critic = base.critic if same_kind else Config.critic
        default = dataclasses.replace(base, algo=algo, critic=critic, **groups)
        train.__kwdefaults__ = {**(train.__kwdefaults__ or {}), "run": default}
    return train


def _abbreviated(name: str, settings: Iterable[str]) -> UserError | None:
    """Return the error for the initials of settings, such as `lr`, or None."""
    meant = [each for each in settings if name == "".join(word[0] for word in each.split("_"))]
    options = " or ".join(f"--{each.replace('_', '-')}" for each in sorted(meant))
    return UserError(f"unknown option --{name}. Did you mean {options}?") if meant else None


def _read_config(file: Path, trust_code: bool) -> Config:
    from mrn.runs.provenance import read_run_info_file

    return read_run_info_file(file, trust_code).config


def resume(
    run: Annotated[Path, tyro.conf.arg(metavar="RUN")],
    epochs: int | None = None,
    stop_at: float | None = None,
    device: str | None = None,
    threads: int | None = None,
    env_timeout: float | None = None,
    checkpoint_every: int | None = None,
    track: str | None = None,
    trust_code: bool = False,
) -> None:
    """Resume an interrupted run or extend a finished one; options default to its settings.

    Args:
        run: Run folder.
        epochs: Total number of training epochs.
        stop_at: Stop after the first evaluation with at least this success rate.
        device: `cpu`, `cuda`, `cuda:N`, or `auto` (the CPU).
        threads: CPU threads.
        env_timeout: Seconds to wait for an environment to start and, with `--async-envs`, to
            respond.
        checkpoint_every: Epochs between checkpoints.
        track: Log to `wandb` or `trackio`. Defaults to the tracker used so far.
        trust_code: Import the custom modules that the run names.
    """
    from mrn.runs.provenance import read_config
    from mrn.zoo import find_entry

    if find_entry(run):
        raise UserError(
            f"{run} cannot be resumed: pretrained policies have no checkpoint. Train a new run "
            "with `mrn train`"
        )
    given = {"epochs": epochs, "stop_at": stop_at, "device": device, "threads": threads}
    given |= {"env_timeout": env_timeout, "checkpoint_every": checkpoint_every}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if epochs is not None and stop_at is None:
        changes["stop_at"] = None  # asking for more epochs lifts the old stopping criterion
    _run(dataclasses.replace(read_config(run, trust_code), **changes), run, True, track)


def _run(config: Config, folder: Path, resume: bool, track: str | None) -> None:
    from mrn.integrations.tracking import open_trackers
    from mrn.runs.layout import CONFIG
    from mrn.runs.provenance import resume_command, run_arguments
    from mrn.training.loop import run

    tune_allocator()
    try:
        with open_trackers(track, folder) as trackers:
            run(config, folder, resume=resume, callbacks=trackers)
    except RunError as error:
        if error.resumable:
            remedy = "repeat the command"  # it failed before its settings were written
            if (folder / CONFIG).exists():
                remedy = f"resume with: {resume_command(folder, config, world_size())}"
            error.args = (f"{error}. Fix the cause, then {remedy}",)
        raise
    if is_main():
        show(
            f"Done. Metrics and weights are in {folder}. Evaluate with: "
            f"{command_here()} eval {run_arguments(folder, config)}"
        )


def evaluate(
    run: Annotated[str, tyro.conf.arg(metavar="RUN")],
    episodes: int = 100,
    engine: str = "auto",
    weights: str = "latest",
    seed: int = 0,
    device: str = "auto",
    threads: int | None = None,
    goal: Goal = None,
    render: bool = False,
    json_: Annotated[bool, tyro.conf.arg(name="json")] = False,
    trust_code: bool = False,
) -> None:
    """Evaluate a trained agent without exploration noise.

    Args:
        run: Run folder, weights file, or `zoo:NAME` (see `mrn zoo`).
        episodes: Number of episodes.
        engine: Simulation engine: `envpool`, `gymnasium`, or `auto` (EnvPool if it has the task).
        weights: `latest`, or `best` for the epoch with the highest success rate.
        seed: Seed of the environments.
        device: `cpu`, `cuda`, `cuda:N`, or `auto` (the CPU).
        threads: CPU threads for the simulation. Defaults to all cores.
        goal: Goal for all episodes, for example 1.3,0.7,0.42. By default goals are sampled.
        render: Show the episodes in a window, one after another, on Gymnasium.
        json_: Print the results as JSON.
        trust_code: Import the custom modules that the run names.
    """
    import mrn
    from mrn.training.weights import find_weights

    file = find_weights(run, weights)
    agent = mrn.load(file, device=device, trust_code=trust_code)
    result = agent.evaluate(episodes, seed, engine, threads, not json_, goal, render)
    interval = result.interval
    if json_:
        header = {"task": agent.spec.name, "weights": str(file), "seed": seed, "goal": goal}
        if agent.selection is not None:
            header["selection"] = vars(agent.selection)
        results = dataclasses.asdict(result) | {"interval_95": [interval.low, interval.high]}
        show(json.dumps(header | results, indent=2))
        return
    steps = "-" if result.steps_to_success is None else f"{result.steps_to_success:.1f}"
    show(f"{agent.spec.name}: {result.episodes} episodes on {result.engine}, seed {seed}, {file}")
    if agent.selection is not None and agent.selection.success is not None:
        show(
            f"weights                   epoch {agent.selection.epoch}, the best of its evaluations "
            f"in training ({agent.selection.success:.1%}, biased upward); below are new episodes"
        )
    if goal is not None:
        show(f"goal                      {','.join(map(str, goal))}")
    show(
        f"success at the last step  {result.success:.1%}  "
        f"(95% Wilson interval: {interval.low:.1%} to {interval.high:.1%})"
    )
    show(f"success at any step       {result.success_any:.1%}")
    show(f"steps to success          {steps}")
