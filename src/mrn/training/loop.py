"""The training loop: envs -> rollout -> replay -> agent.update -> evaluate -> run folder."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mrn.config import Config
from mrn.critics import CRITICS
from mrn.envs import find_task, make_envs
from mrn.errors import look_up
from mrn.seeding import derive_seed
from mrn.signals import Interruption
from mrn.training.agent import Agent
from mrn.training.checkpoint import Checkpoints
from mrn.training.device import default_threads, find_device, torch_threads
from mrn.training.evaluate import evaluate
from mrn.training.progress import TrainingProgress
from mrn.training.rundir import COLUMNS, RunDir
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

    trainer = Trainer(config, task, device)
    agent, checkpoints = trainer.agent, Checkpoints(folder / "checkpoints")
    engine = (config.engine, threads, config.workers, config.worker_timeout)
    with (
        torch_threads(threads),
        make_envs(shape, plan.episodes, *engine) as envs,
        make_envs(shape, min(plan.episodes, plan.eval_episodes or 1), *engine) as test_envs,
        RunDir(folder, config, shape, resume) as run_dir,
        TrainingProgress(f"{shape.name} {config.critic}", epochs, plan.cycles, progress) as display,
        Interruption() as interruption,
    ):
        display.say(
            f"{shape.name}, {config.agent} with critic {config.critic}, seed {config.seed}, on "
            f"{device}; replay {trainer.replay.nbytes / 2**20:,.0f} MiB; run folder {folder}"
        )
        metrics = checkpoints.load(trainer)
        if metrics is not None:
            run_dir.restore(metrics)
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
            row: dict[str, Any] = dict.fromkeys(COLUMNS)
            row |= {"epoch": trainer.epoch, "env_steps": trainer.env_steps}
            row |= {"updates": trainer.updates, **losses}
            row["steps_per_second"] = clock.rate(trainer.env_steps - steps_before)
            if plan.eval_episodes:
                with clock("evaluation"), torch_threads(1):
                    test_seed = derive_seed(config.seed, "evaluation", trainer.epoch)
                    result = evaluate(test_envs, agent.act, plan.eval_episodes, test_seed)
                row |= {k: v for k, v in vars(result).items() if k != "episodes"}
            row |= {f"{name}_seconds": round(clock[name], 3) for name in clock.names}
            agent.save(folder / "latest.safetensors")
            if (row["success"] or 0.0) >= trainer.best:
                trainer.best = row["success"] or 0.0
                agent.save(folder / "best.safetensors")
            run_dir.log(row)  # after the weights: an epoch that is listed has them
            trainer.next_epoch()
            due = (trainer.epoch - 1) % config.checkpoint_every == 0 or trainer.epoch > epochs
            if due or interruption.received:
                checkpoints.save(trainer, run_dir.rows)
            display.epoch(row)
            if interruption.received and trainer.epoch <= epochs:
                raise interruption.end(f"mrn resume {folder}")
    return agent


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

    def __getitem__(self, name: str) -> float:
        """Seconds of a part."""
        return self.seconds[name]

    def rate(self, count: int) -> float:
        """So many per second of all parts."""
        return round(count / max(sum(self.seconds.values()), 1e-9), 1)
