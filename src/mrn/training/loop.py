"""The training loop: envs -> rollout -> replay -> algorithm.update -> evaluate -> run folder."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mrn.agent import Agent
from mrn.config import Config
from mrn.critics import find_critic
from mrn.distributed import Ranks, join_ranks, launch_command
from mrn.envs import GoalVectorEnv, find_task, make_envs
from mrn.runs.checkpoint import Checkpoints
from mrn.runs.layout import weights_file
from mrn.runs.metrics import Row, reached_stop_at
from mrn.runs.provenance import check_processes, with_original_machine
from mrn.runs.run_dir import NullRunDir, RunDir, is_finished_run
from mrn.training.evaluation import evaluate
from mrn.training.progress import TrainingProgress, print_line
from mrn.training.trainer import Trainer
from mrn.utils.device import default_threads, find_device, memory_errors, torch_threads
from mrn.utils.errors import RunError
from mrn.utils.naming import NO_CRITIC
from mrn.utils.seeding import derive_seed
from mrn.utils.signals import InterruptHandler

Callback = Callable[[Agent, Row], bool | None]
"""Is called at the end of each epoch with the agent and the epoch's row of metrics, when both are
saved; training ends where it returns True."""


def run(
    config: Config,
    folder: Path,
    progress: bool = True,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
) -> Agent:
    """Train an agent as configured.

    Args:
        config: The settings.
        folder: The run's folder: empty or new, unless the run in it is to be resumed.
        progress: Whether to show how it goes.
        resume: Go on with the run in the folder, if there is one, as if it had never stopped.
        callbacks: Are called at the end of each epoch.

    Raises:
        UserError: A name is unknown, the environment does not fit, or the folder is taken.
        RunError: The run cannot go on; its last checkpoint is whole.
        Interrupted: It was asked to end, by Ctrl-C or SIGTERM, and has saved.
    """
    with join_ranks() as ranks:
        return _run(config, folder, progress and ranks.is_main, resume, callbacks, ranks)


def _run(
    config: Config,
    folder: Path,
    progress: bool,
    resume: bool,
    callbacks: Sequence[Callback],
    ranks: Ranks,
) -> Agent:
    if config.critic != NO_CRITIC:
        find_critic(config.critic)
    here = with_original_machine(config, folder) if resume else config
    device = find_device(here.device)
    task = find_task(config.task, config.reward_shift, config.env_kwargs)
    spec, plan = task.spec, config.schedule
    epochs, threads = config.epochs or task.epochs, here.threads or default_threads()
    config = replace(config, epochs=epochs)

    if resume and folder.is_dir() and is_finished_run(folder, config, spec):
        print_line(f"{folder} is finished: there is nothing left to train", progress)
        return Agent.load(weights_file(folder), device)
    if resume:
        check_processes(folder, ranks.size)
    with memory_errors(SMALLER):
        trainer, checkpoints = Trainer(config, task, device, ranks), Checkpoints(folder)

    def make(count: int) -> GoalVectorEnv:
        engine = (config.engine, threads, config.async_envs, config.env_timeout)
        return make_envs(spec, count, *engine, first=ranks.rank * count)

    tests = -(-min(plan.num_envs, plan.eval_episodes or 1) // ranks.size)
    place = {"threads": str(threads), "device": device.type}
    about = (folder, config, spec, resume, trainer.metrics, ranks.size, place)
    go_on = f"{launch_command(ranks.size)} resume {shlex.quote(str(folder))}"
    with (
        memory_errors(f"a new run needs less: {SMALLER}", RunError),
        torch_threads(threads),
        make(plan.num_envs // ranks.size) as envs,
        make(tests) as test_envs,
        RunDir(*about) if ranks.is_main else NullRunDir() as run_dir,
        TrainingProgress(f"{spec.name} {config.method}", epochs, plan.cycles, progress) as display,
        InterruptHandler("saving after this cycle", ranks) as interruption,
    ):
        display.say(f"{spec.name}, {config.algo} with critic {config.critic}, seed {config.seed}")
        many = f", {ranks.size} processes" if ranks.size > 1 else ""
        memory = trainer.replay.nbytes * ranks.size / 2**20
        display.say(f"on {device}{many}, replay {memory:,.0f} MiB, in {folder}")
        rows = checkpoints.load(trainer)
        run_dir.begin(rows)
        if rows is not None:
            display.resume(trainer.epoch, trainer.cycle)
        while trainer.epoch <= epochs:
            while trainer.cycle < plan.cycles:
                losses = train_cycle(trainer, envs)
                display.cycle(trainer.epoch, trainer.clock.rate)
                if interruption.requested() and trainer.cycle < plan.cycles:
                    checkpoints.save(trainer, run_dir.rows)
                    raise interruption.end(go_on)
            row = training_row(trainer, losses)
            if plan.eval_episodes:
                row |= evaluate_epoch(trainer, test_envs)
            row |= trainer.clock.row()
            keep_weights(trainer, folder, row["success"])
            run_dir.log(row)  # after the weights: an epoch that is listed has them
            trainer.next_epoch()
            display.epoch(row)
            asked = [callback(trainer.agent, row) for callback in callbacks if ranks.is_main]
            ends = trainer.epoch > epochs or reached_stop_at(row, config.stop_at)
            ends = bool(ranks.all_reduce_max(ends or True in asked))
            interrupted = interruption.requested()
            if ends or interrupted or (trainer.epoch - 1) % config.checkpoint_every == 0:
                checkpoints.save(trainer, run_dir.rows)
            if ends:
                break
            if interrupted:
                raise interruption.end(go_on)
    return trainer.agent


SMALLER = "lower hidden_dim, batch_size, num_envs or buffer_size"


def train_cycle(trainer: Trainer, envs: GoalVectorEnv) -> dict[str, float]:
    """Play a cycle's episodes and learn; the mean metrics of the epoch so far."""
    with trainer.clock("rollout"):
        trainer.collect(envs)
    with trainer.clock("update"):
        trainer.learn()
        return trainer.mean_losses()


def training_row(trainer: Trainer, losses: dict[str, float]) -> Row:
    """What is known of an epoch before its evaluation."""
    return {
        "epoch": trainer.epoch,
        "env_steps": trainer.env_steps,
        "updates": trainer.updates,
        "success": None,
        "success_any": None,
        "steps_to_success": None,
        "steps_per_second": trainer.clock.rate,
        **losses,
    }


def evaluate_epoch(trainer: Trainer, envs: GoalVectorEnv) -> Row:
    """Evaluate the epoch's policy, with random numbers of its own."""
    config = trainer.config
    seed = derive_seed(config.seed, "evaluation", trainer.epoch)
    with trainer.clock("evaluation"), torch_threads(1):
        episodes, act = config.schedule.eval_episodes, trainer.agent.act
        result = evaluate(envs, act, episodes, seed, ranks=trainer.ranks)
    return {
        "success": result.success,
        "success_any": result.success_any,
        "steps_to_success": result.steps_to_success,
    }


def keep_weights(trainer: Trainer, folder: Path, success: float | None) -> None:
    """Save the latest weights, and as the best ones too if no epoch was better."""
    best = (success or 0.0) >= trainer.best
    trainer.best = max(trainer.best, success or 0.0)
    for name in ("latest", *(["best"] if best else [])) if trainer.ranks.is_main else ():
        trainer.agent.save(weights_file(folder, name))
