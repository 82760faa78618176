"""How long the runs of a sweep will take here and how much disk they need, from a short probe."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from rich.table import Table

from mrn.config import Config
from mrn.device import find_device, torch_threads
from mrn.envs import GoalVectorEnv, find_task, make_envs
from mrn.experiments.jobs import Job
from mrn.experiments.overview import duration
from mrn.training.trainer import Trainer

UPDATES = 8
"""Updates timed for each critic and task size, after some to warm up."""


class Estimate(NamedTuple):
    """What a run needs from its beginning, or from where it is."""

    seconds: float
    bytes: int


class _Update(NamedTuple):
    seconds: float
    replay_bytes: float  # of one stored transition
    state_bytes: int  # of all weights in a run's folder


def estimate(jobs: Sequence[Job], at_a_time: int, note: Callable[[str], None]) -> tuple[Table, str]:
    """What a sweep will take, as a table of its runs and a sentence about all of them."""
    estimates = probe(jobs, note)
    table = Table("run", "epochs", "done", "time left", "disk")
    for job, need in estimates.items():
        disk = f"{need.bytes / 2**20:,.0f} MiB"
        epochs = (str(job.config.epochs), str(job.epochs_done))
        table.add_row(job.name, *epochs, duration(need.seconds), disk)
    total = sum(need.bytes for need in estimates.values())
    whole = duration(makespan(estimates, at_a_time))
    return table, (
        f"{len(jobs)} runs, {at_a_time} at a time: about {whole} if they do not slow each other "
        f"down, and {total / 2**30:.1f} GiB of disk (far less with --discard-checkpoints)"
    )


def probe(jobs: Sequence[Job], note: Callable[[str], None]) -> dict[Job, Estimate]:
    """Time one cycle's episodes on each task and a few updates of each critic, and multiply.

    Args:
        jobs: The runs.
        note: Is told what is being measured.

    Returns:
        For each job the time that is left on one process, and the disk of a finished run.
    """
    steps: dict[tuple[object, ...], float] = {}
    updates: dict[tuple[object, ...], _Update] = {}
    estimates = {}
    for job in jobs:
        config, plan = job.config, job.config.schedule
        shape = find_task(config.task, config.reward_shift).shape
        place = (config.threads, config.engine, config.workers, plan.episodes)
        if (config.task, *place) not in steps:
            note(f"probing episodes of {config.task}")
            steps[config.task, *place] = _seconds_per_step(config)
        sizes = (shape.state_dim, shape.goal_dim, shape.action_dim, shape.horizon)
        kind = (config.agent, config.critic, config.threads, config.learning, config.memory, *sizes)
        if kind not in updates:
            note(f"probing updates of {config.agent} with {config.critic} on {config.task}")
            updates[kind] = _probe_update(config)
        update, step = updates[kind], steps[config.task, *place]
        episodes, epochs = plan.cycles * plan.episodes, config.epochs or 1
        epoch = (episodes + plan.eval_episodes) * shape.horizon * step
        epoch += plan.cycles * plan.updates * update.seconds
        stored = min(epochs * episodes * shape.horizon, config.memory.capacity)
        estimates[job] = Estimate(
            seconds=max(epochs - job.epochs_done, 0) * epoch,
            bytes=round(stored * update.replay_bytes) + update.state_bytes,
        )
    return estimates


def makespan(estimates: dict[Job, Estimate], at_a_time: int) -> float:
    """Seconds for all of them when the next one begins as soon as a place is free."""
    places = [0.0] * at_a_time
    for need in estimates.values():
        places[places.index(min(places))] += need.seconds
    return max(places)


def _seconds_per_step(config: Config) -> float:
    """Of one environment, when all of a cycle's are played side by side."""
    trainer, envs = _trainer(config)
    with envs:
        trainer.collect(envs)  # creates the environments
        trainer.cycle += 1
        started = time.perf_counter()
        trainer.collect(envs)
        return (time.perf_counter() - started) / int(trainer.episodes.length.sum())


def _probe_update(config: Config) -> _Update:
    few = replace(config.schedule, episodes=1, updates=UPDATES)
    trainer, envs = _trainer(replace(config, schedule=few))
    with envs, torch_threads(config.threads or 1):
        trainer.collect(envs)
        trainer.learn()
        started = time.perf_counter()
        trainer.learn()
        seconds = (time.perf_counter() - started) / UPDATES
    capacity = trainer.config.memory.capacity
    checkpoint = sum(tensor.nbytes for tensor in trainer.tensors().values())
    weights = sum(tensor.nbytes for tensor in trainer.agent.state_dict().values())
    # The last two checkpoints are kept, and the latest and the best weights.
    return _Update(seconds, trainer.replay.nbytes / capacity, 2 * checkpoint + 2 * weights)


def _trainer(config: Config) -> tuple[Trainer, GoalVectorEnv]:
    """An untrained agent with a small memory, and its environments."""
    task = find_task(config.task, config.reward_shift)
    engine = (config.engine, config.threads or 1, config.workers, config.worker_timeout)
    envs = make_envs(task.shape, config.schedule.episodes, *engine)
    small = replace(config.memory, capacity=10 * task.shape.horizon * config.schedule.episodes)
    return Trainer(replace(config, memory=small), task, find_device(config.device)), envs
