"""Estimate the time and disk space of a sweep from a short probe."""

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rich.markup import escape
from rich.table import Table

from mrn.config import Config
from mrn.envs import GoalVectorEnv, make_envs
from mrn.runs.replay_files import COPIES
from mrn.sweeps.jobs import Job
from mrn.sweeps.overview import duration
from mrn.sweeps.suites import task_of
from mrn.training.trainer import Trainer
from mrn.utils.device import find_device, torch_threads

UPDATES = 8
"""Updates timed for each critic and task size, after a warmup."""


class Estimate(NamedTuple):
    """Remaining time and disk space of a run."""

    seconds: float
    checkpoints: int
    """Bytes of the checkpoints of a finished run."""
    weights: int
    """Bytes that remain if the checkpoints are deleted."""
    on_disk: int = 0
    """Bytes of the run's folder now."""


class _Update(NamedTuple):
    seconds: float
    replay_bytes: float  # per transition
    state_bytes: int  # everything else in the checkpoints
    weights_bytes: int


Estimates = dict[Job, Estimate]


def estimate_sweep(
    jobs: Sequence[Job], parallel: int | None, discard: bool, log: Callable[[str], None]
) -> tuple[Table, str]:
    """Return a table of the tasks, and a text about time and disk space of the whole sweep.

    Args:
        jobs: The runs.
        parallel: Number of parallel runs; None if unknown.
        discard: Whether the checkpoints of finished runs are deleted.
        log: Receives a message for each measurement.
    """
    estimates = probe(jobs, log)
    table = Table("task", "methods", "runs", "finished", "epochs", "done", "time left", "disk")
    tasks = dict.fromkeys(job.config.task for job in jobs)
    for task in tasks:
        own = {job: each for job, each in estimates.items() if job.config.task == task}
        counts = (
            len({job.config.method for job in own}),
            len(own),
            sum(job.finished for job in own),
            sum(job.epochs for job in own),
            sum(min(job.epochs_done, job.epochs) for job in own),
        )
        seconds = sum(each.seconds for each in own.values())
        size = disk(own, parallel, discard)
        table.add_row(escape(task), *map(str, counts), duration(seconds), format_size(size))
    work = duration(sum(each.seconds for each in estimates.values()))
    time_left = f"about {work} of compute"
    if parallel:
        total = duration(makespan(estimates, parallel))
        time_left += f", {total} with {parallel} in parallel if they do not slow each other down"
    recipes = " and ".join(sorted({job.config.recipe for job in jobs}))
    header = f"{len(jobs)} runs with recipe {recipes}: {time_left}."
    return table, f"{header}\n{_disk_text(estimates, parallel, discard)}"


def _disk_text(estimates: Estimates, parallel: int | None, discard: bool) -> str:
    """Return the disk space required and available, and the fix if it does not suffice."""
    root = next(iter(estimates)).root
    place = next(path for path in (root, *root.parents) if path.is_dir())
    free = shutil.disk_usage(place).free
    more = disk(estimates, parallel, discard, additional=True)
    text = f"Disk: {format_size(more)} more, {format_size(free)} free in {place}"
    if more <= free:
        return f"{text}."
    remedy = "choose another --runs"
    smaller = disk(estimates, parallel, True, additional=True)
    if not discard and smaller <= free:
        remedy += f", or pass --discard-checkpoints, which reduces it to {format_size(smaller)}"
    return f"{text}: NOT ENOUGH SPACE; {remedy}."


def disk(
    estimates: Estimates, parallel: int | None, discard: bool, additional: bool = False
) -> int:
    """Return the peak disk usage of all runs in bytes.

    Args:
        estimates: Estimates of the runs.
        parallel: Number of parallel runs; None if unknown.
        discard: Whether only running jobs keep checkpoints.
        additional: Count only what is not on disk yet.
    """
    peak = 0
    checkpoints = []
    for job, each in estimates.items():
        kept = each.weights + (0 if discard else each.checkpoints)
        if not (additional and job.finished):
            peak += max(kept - each.on_disk, 0) if additional else kept
            checkpoints.append(each.checkpoints)
    if discard:
        peak += sum(sorted(checkpoints, reverse=True)[:parallel])
    return peak


def probe(jobs: Sequence[Job], log: Callable[[str], None]) -> Estimates:
    """Time one cycle of episodes on each task and a few updates of each critic, and extrapolate.

    Args:
        jobs: The runs.
        log: Receives a message for each measurement.

    Returns:
        For each job, the remaining time in one process and the disk space of a finished run.
    """
    steps: dict[tuple[object, ...], float] = {}
    updates: dict[tuple[object, ...], _Update] = {}
    estimates: Estimates = {}
    for job in jobs:
        config, plan = job.config, job.config.schedule
        spec = task_of(config).spec
        made = (json.dumps(config.env_kwargs, sort_keys=True), config.device)
        place = (config.threads, config.engine, config.async_envs, plan.num_envs, *made)
        if (config.task, *place) not in steps:
            log(f"probing episodes of {config.task}")
            steps[config.task, *place] = _seconds_per_step(config)
        sizes = (spec.state_dim, spec.goal_dim, spec.action_dim, spec.horizon)
        kind = (
            config.algo,
            config.critic,
            config.threads,
            config.algo_config,
            config.replay,
            *sizes,
            *made,
        )
        if kind not in updates:
            log(f"probing updates of {config.algo} with {config.critic} on {config.task}")
            updates[kind] = _probe_update(config)
        update, step = updates[kind], steps[config.task, *place]
        episodes, epochs = plan.cycles * plan.num_envs, config.epochs or 1
        epoch = (episodes + plan.eval_episodes) * spec.horizon * step
        epoch += plan.cycles * plan.gradient_steps * update.seconds
        stored = min(epochs * episodes * spec.horizon, config.replay.buffer_size)
        estimates[job] = Estimate(
            seconds=max(epochs - job.epochs_done, 0) * epoch,
            checkpoints=round(stored * update.replay_bytes) + update.state_bytes,
            weights=update.weights_bytes,
            on_disk=_folder_size(job.folder),
        )
    return estimates


def makespan(estimates: Estimates, parallel: int) -> float:
    """Return the seconds until all runs finish, if each starts as soon as a slot is free."""
    slots = [0.0] * parallel
    for each in estimates.values():
        slots[slots.index(min(slots))] += each.seconds
    return max(slots)


def _seconds_per_step(config: Config) -> float:
    """Return the time per step of one environment, with all environments of a cycle."""
    trainer, envs = _trainer(config)
    with envs:
        trainer.collect(envs)  # creates the environments
        trainer.cycle += 1
        started = time.perf_counter()
        trainer.collect(envs)
        return (time.perf_counter() - started) / int(trainer.episodes.length.sum())


def _probe_update(config: Config) -> _Update:
    few = replace(config.schedule, num_envs=1, gradient_steps=UPDATES)
    trainer, envs = _trainer(replace(config, schedule=few))
    with envs, torch_threads(config.threads or 1):
        trainer.collect(envs)
        trainer.learn()
        trainer.mean_losses()  # synchronizes with the GPU
        started = time.perf_counter()
        trainer.learn()
        trainer.mean_losses()
        seconds = (time.perf_counter() - started) / UPDATES
    replay = COPIES * trainer.replay.nbytes / trainer.config.replay.buffer_size
    checkpoint = sum(tensor.nbytes for tensor in trainer.tensors().values())
    weights = sum(tensor.nbytes for tensor in trainer.agent.state_dict().values())
    # A run keeps its last two checkpoints, and the latest and the best weights.
    return _Update(seconds, replay, 2 * checkpoint, 2 * weights)


def _trainer(config: Config) -> tuple[Trainer, GoalVectorEnv]:
    """Return a trainer with a small replay buffer, and its environments."""
    task = task_of(config)
    engine = (config.engine, config.threads or 1, config.async_envs, config.env_timeout)
    small = replace(config.replay, buffer_size=10 * task.spec.horizon * config.schedule.num_envs)
    trainer = Trainer(replace(config, replay=small), task, find_device(config.device))
    return trainer, make_envs(task.spec, config.schedule.num_envs, *engine)


def _folder_size(folder: Path) -> int:
    """Return the bytes of the files in a folder, which may not exist or may change meanwhile."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(path, name), follow_symlinks=False).st_size
    return total


def format_size(size: float) -> str:
    """Format a size in GiB or MiB."""
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.0f} MiB"
