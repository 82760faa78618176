"""The training loop: envs -> rollout -> replay -> learner.update -> evaluate -> run folder."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from mrn.config import Config
from mrn.critics import CRITICS
from mrn.device import default_threads, find_device, torch_threads
from mrn.envs import GoalVectorEnv, find_task, make_envs
from mrn.errors import look_up
from mrn.seeding import derive_seed
from mrn.signals import Interruption
from mrn.training.agent import Agent
from mrn.training.checkpoint import Checkpoints
from mrn.training.evaluate import evaluate
from mrn.training.layout import weights_file
from mrn.training.metrics import Row
from mrn.training.progress import TrainingProgress
from mrn.training.rundir import RunDir
from mrn.training.trainer import Trainer


def run(config: Config, folder: Path, progress: bool = True, resume: bool = False) -> Agent:
    """Train an agent as configured.

    Args:
        config: The settings.
        folder: The run's folder: empty or new, unless the run in it is to be resumed.
        progress: Whether to show how it goes.
        resume: Go on with the run in the folder, if there is one, as if it had never stopped.

    Raises:
        UserError: A name is unknown, the environment does not fit, or the folder is taken.
        RunError: The run cannot go on; its last checkpoint is whole.
        Interrupted: It was asked to end, by Ctrl-C or SIGTERM, and has saved.
    """
    look_up("critic", config.critic, CRITICS)
    device = find_device(config.device)
    task = find_task(config.task, config.reward_shift)
    shape, plan = task.shape, config.schedule
    epochs, threads = config.epochs or task.epochs, config.threads or default_threads()
    config = replace(config, epochs=epochs)

    trainer, checkpoints = Trainer(config, task, device), Checkpoints(folder)
    engine = (config.engine, threads, config.workers, config.worker_timeout)
    with (
        torch_threads(threads),
        make_envs(shape, plan.episodes, *engine) as envs,
        make_envs(shape, min(plan.episodes, plan.eval_episodes or 1), *engine) as test_envs,
        RunDir(folder, config, shape, resume, trainer.metrics) as run_dir,
        TrainingProgress(f"{shape.name} {config.critic}", epochs, plan.cycles, progress) as display,
        Interruption() as interruption,
    ):
        display.say(
            f"{shape.name}, {config.agent} with critic {config.critic}, seed {config.seed}, on "
            f"{device}; replay {trainer.replay.nbytes / 2**20:,.0f} MiB; run folder {folder}"
        )
        rows = checkpoints.load(trainer)
        if rows is not None:
            run_dir.restore(rows)
            display.resume(trainer.epoch, trainer.cycle)
        while trainer.epoch <= epochs:
            clock, steps_before = Clock(), trainer.env_steps
            while trainer.cycle < plan.cycles:
                with clock("rollout"):
                    trainer.collect(envs)
                with clock("update"):
                    trainer.learn()
                    losses = trainer.mean_losses()
                display.cycle(trainer.epoch, clock.rate(trainer.env_steps - steps_before))
                if interruption.received and trainer.cycle < plan.cycles:
                    checkpoints.save(trainer, run_dir.rows)
                    raise interruption.end(f"mrn resume {folder}")
            row = training_row(trainer, losses, clock, steps_before)
            if plan.eval_episodes:
                with clock("evaluation"):
                    row |= evaluate_epoch(trainer, test_envs)
            row |= clock.row()
            keep_weights(trainer, folder, row["success"])
            run_dir.log(row)  # after the weights: an epoch that is listed has them
            trainer.next_epoch()
            due = (trainer.epoch - 1) % config.checkpoint_every == 0 or trainer.epoch > epochs
            if due or interruption.received:
                checkpoints.save(trainer, run_dir.rows)
            display.epoch(row)
            if interruption.received and trainer.epoch <= epochs:
                raise interruption.end(f"mrn resume {folder}")
    return trainer.agent


class Clock:
    """Seconds spent in each part of an epoch."""

    names = ("rollout", "update", "evaluation")

    def __init__(self) -> None:
        """Start at zero."""
        self.seconds = dict.fromkeys(self.names, 0.0)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Count the time of a block towards a part."""
        started = time.perf_counter()
        yield
        self.seconds[name] += time.perf_counter() - started

    def rate(self, count: int) -> float:
        """So many per second of all parts."""
        return round(count / max(sum(self.seconds.values()), 1e-9), 1)

    def row(self) -> Row:
        """The columns of the seconds."""
        return {f"{name}_seconds": round(spent, 3) for name, spent in self.seconds.items()}


def training_row(
    trainer: Trainer, losses: dict[str, float], clock: Clock, steps_before: int
) -> Row:
    """What is known of an epoch before its evaluation."""
    return {
        "epoch": trainer.epoch,
        "env_steps": trainer.env_steps,
        "updates": trainer.updates,
        "success": None,
        "success_any": None,
        "steps_to_success": None,
        "steps_per_second": clock.rate(trainer.env_steps - steps_before),
        **losses,
    }


def evaluate_epoch(trainer: Trainer, envs: GoalVectorEnv) -> Row:
    """Evaluate the epoch's policy, with random numbers of its own."""
    config = trainer.config
    seed = derive_seed(config.seed, "evaluation", trainer.epoch)
    with torch_threads(1):
        result = evaluate(envs, trainer.agent.act, config.schedule.eval_episodes, seed)
    return {name: value for name, value in vars(result).items() if name != "episodes"}


def keep_weights(trainer: Trainer, folder: Path, success: float | None) -> None:
    """Save the latest weights, and as the best ones too if no epoch was better."""
    trainer.agent.save(weights_file(folder, "latest"))
    if (success or 0.0) >= trainer.best:
        trainer.best = success or 0.0
        trainer.agent.save(weights_file(folder, "best"))
