"""The training loop: envs -> rollout -> replay -> agent.update -> evaluate -> run folder."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from mrn.config import Config
from mrn.critics import CRITICS
from mrn.envs import find_task, make_envs
from mrn.errors import look_up
from mrn.replay import Episodes, Hindsight, ReplayBuffer
from mrn.training.agent import Agent
from mrn.training.device import default_threads, find_device, torch_threads
from mrn.training.evaluate import evaluate
from mrn.training.progress import TrainingProgress
from mrn.training.rollout import play
from mrn.training.rundir import COLUMNS, RunDir
from mrn.training.seeding import derive_seed, make_generator


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

    agent = Agent(config, shape, device)
    replay = ReplayBuffer(shape, config.memory.capacity, device, plan.episodes)
    hindsight = Hindsight(config.memory.relabel, config.memory.relabel_probability, task.reward)
    sampling = make_generator(seed, "replay", device)
    episodes = Episodes.allocate(shape, plan.episodes)
    engine = (config.engine, threads, config.workers)
    updates = env_steps = 0
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
            f"replay {replay.nbytes / 2**20:,.0f} MiB; run folder {folder}"
        )
        for epoch in range(1, epochs + 1):
            clock = Clock()
            losses = torch.zeros(len(agent.learner.METRICS), device=device)
            steps_before = env_steps
            for cycle in range(plan.cycles):
                # Seeded each epoch: its environments depend on seed and epoch, not on the past.
                env_seed = derive_seed(seed, "environments", epoch) if cycle == 0 else None
                with clock("rollout"), torch_threads(1):
                    play(envs, agent.explore, episodes, env_seed)
                with clock("update"):
                    new = int(episodes.length.sum())
                    replay.add(episodes)
                    agent.normalizer.update(hindsight.newest(replay, new, sampling))
                    for _ in range(plan.updates):
                        batch = hindsight.sample(replay, config.learning.batch_size, sampling)
                        losses += agent.learner.update(agent.normalizer(batch))
                    agent.learner.update_targets()
                env_steps += new
                updates += plan.updates
                display.cycle(epoch, (env_steps - steps_before) / clock.total)
            row: dict[str, Any] = dict.fromkeys(COLUMNS)
            row |= {"epoch": epoch, "env_steps": env_steps, "updates": updates}
            row |= _means(agent.learner.METRICS, losses, plan.cycles * plan.updates)
            row["steps_per_second"] = round((env_steps - steps_before) / clock.total, 1)
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


def _means(names: tuple[str, ...], sums: torch.Tensor, updates: int) -> dict[str, float]:
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
