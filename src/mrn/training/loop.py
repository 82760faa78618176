"""The training loop: envs -> rollout -> replay -> agent.update -> evaluate -> run folder."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mrn.config import Config
from mrn.critics import CRITICS
from mrn.envs import find_task, make_envs
from mrn.errors import look_up
from mrn.training.agent import Agent
from mrn.training.device import default_threads, find_device, torch_threads
from mrn.training.evaluate import evaluate
from mrn.training.progress import TrainingProgress
from mrn.training.rundir import COLUMNS, RunDir
from mrn.training.seeding import derive_seed
from mrn.training.trainer import Trainer


def run(config: Config, folder: Path, progress: bool = True) -> Agent:
    """Train an agent as configured, writing to a run folder that must not exist yet.

    Raises:
        UserError: A name is unknown, the environment does not fit, or the folder is taken.
    """
    look_up("critic", config.critic, CRITICS)
    device = find_device(config.device)
    task = find_task(config.task, config.reward_shift)
    shape, plan, seed = task.shape, config.schedule, config.seed
    epochs, threads = config.epochs or task.epochs, config.threads or default_threads()

    trainer = Trainer(config, task, device)
    agent = trainer.agent
    engine = (config.engine, threads, config.workers)
    best = -1.0
    with (
        torch_threads(threads),
        make_envs(shape, plan.episodes, *engine) as envs,
        make_envs(shape, min(plan.episodes, plan.eval_episodes or 1), *engine) as test_envs,
        RunDir(folder, config, shape) as run_dir,
        TrainingProgress(f"{shape.name} {config.critic}", epochs, plan.cycles, progress) as display,
    ):
        display.say(
            f"{shape.name}, {config.agent} with critic {config.critic}, seed {seed}, on {device}; "
            f"replay {trainer.replay.nbytes / 2**20:,.0f} MiB; run folder {folder}"
        )
        for epoch in range(1, epochs + 1):
            clock, steps_before = Clock(), trainer.env_steps
            losses = torch.zeros(len(agent.learner.METRICS), device=device)
            for cycle in range(plan.cycles):
                # Seeded each epoch: its environments depend on seed and epoch, not on the past.
                env_seed = derive_seed(seed, "environments", epoch) if cycle == 0 else None
                with clock("rollout"):
                    trainer.collect(envs, env_seed)
                with clock("update"):
                    trainer.learn(losses)
                speed = (trainer.env_steps - steps_before) / clock.total
                display.cycle(epoch, speed)
            row: dict[str, Any] = dict.fromkeys(COLUMNS)
            row |= {"epoch": epoch, "env_steps": trainer.env_steps, "updates": trainer.updates}
            row |= _means(agent.learner.METRICS, losses, plan.cycles * plan.updates)
            row["steps_per_second"] = round(speed, 1)
            if plan.eval_episodes:
                with clock("evaluation"), torch_threads(1):
                    test_seed = derive_seed(seed, "evaluation", epoch)
                    result = evaluate(test_envs, agent.act, plan.eval_episodes, test_seed)
                row |= {k: v for k, v in vars(result).items() if k != "episodes"}
            row |= {f"{name}_seconds": round(clock[name], 3) for name in clock.names}
            run_dir.log(row)
            agent.save(folder / "latest.safetensors")
            if (row["success"] or 0.0) >= best:
                best = row["success"] or 0.0
                agent.save(folder / "best.safetensors")
            display.epoch(row)
    return agent


def _means(names: tuple[str, ...], sums: Tensor, updates: int) -> dict[str, float]:
    """Means over an epoch's updates, read from the device once."""
    return dict(zip(names, (sums / max(updates, 1)).tolist(), strict=True))


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

    @property
    def total(self) -> float:
        """Seconds of all parts."""
        return sum(self.seconds.values())
