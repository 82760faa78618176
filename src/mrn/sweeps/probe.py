"""How long the runs of a sweep will take here and how much disk they need, from a short probe."""

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
from mrn.sweeps.jobs import Job
from mrn.sweeps.overview import duration
from mrn.sweeps.suites import task_of
from mrn.training.trainer import Trainer
from mrn.utils.device import find_device, torch_threads

UPDATES = 8
"""Updates timed for each critic and task size, after some to warm up."""


class Estimate(NamedTuple):
    """What a run still needs."""

    seconds: float
    checkpoints: int
    """Bytes of those of a finished run."""
    weights: int
    """Bytes of what stays when they are discarded."""
    there: int = 0
    """Bytes of its folder as it is."""


class _Update(NamedTuple):
    seconds: float
    replay_bytes: float  # of one stored transition
    state_bytes: int  # of all else in a run's checkpoints
    weights_bytes: int


Estimates = dict[Job, Estimate]


def estimate_sweep(
    jobs: Sequence[Job], at_a_time: int | None, discard: bool, note: Callable[[str], None]
) -> tuple[Table, str]:
    """What a sweep will take, as a table of its tasks and a few sentences about all of it.

    Args:
        jobs: The runs.
        at_a_time: How many are trained side by side; None where that is not known.
        discard: Whether the checkpoints of finished runs are removed.
        note: Is told what is being measured.
    """
    needs = probe(jobs, note)
    table = Table("task", "methods", "runs", "finished", "epochs", "done", "time left", "disk")
    tasks = dict.fromkeys(job.config.task for job in jobs)
    for task in tasks:
        own = {job: need for job, need in needs.items() if job.config.task == task}
        counts = (
            len({job.config.method for job in own}),
            len(own),
            sum(job.finished for job in own),
            sum(job.epochs for job in own),
            sum(min(job.epochs_done, job.epochs) for job in own),
        )
        seconds = sum(need.seconds for need in own.values())
        size = disk(own, at_a_time, discard)
        table.add_row(escape(task), *map(str, counts), duration(seconds), in_gib(size))
    work = duration(sum(need.seconds for need in needs.values()))
    time_left = f"about {work} of work"
    if at_a_time:
        whole = duration(makespan(needs, at_a_time))
        time_left += f", {whole} with {at_a_time} at a time if they do not slow each other down"
    return table, f"{len(jobs)} runs: {time_left}.\n{_about_disk(needs, at_a_time, discard)}"


def _about_disk(needs: Estimates, at_a_time: int | None, discard: bool) -> str:
    """How much disk is needed, how much there is, and what to do if that is not enough."""
    root = next(iter(needs)).root
    place = next(path for path in (root, *root.parents) if path.is_dir())
    free = shutil.disk_usage(place).free
    more = disk(needs, at_a_time, discard, further=True)
    text = f"Disk: {in_gib(more)} more, {in_gib(free)} free in {place}"
    if more <= free:
        return f"{text}."
    remedy = "choose another --runs"
    smaller = disk(needs, at_a_time, True, further=True)
    if not discard and smaller <= free:
        remedy += f", or --discard-checkpoints, with which it takes {in_gib(smaller)}"
    return f"{text}: THIS DOES NOT FIT; {remedy}."


def disk(needs: Estimates, at_a_time: int | None, discard: bool, further: bool = False) -> int:
    """Bytes of all runs when they are finished, or the most on the way there.

    Args:
        needs: What each run needs.
        at_a_time: How many are trained side by side; None where that is not known.
        discard: Whether only those that are being trained have checkpoints.
        further: PositiveInt only what is not on the disk yet.
    """
    most = 0
    checkpoints = []
    for job, need in needs.items():
        kept = need.weights + (0 if discard else need.checkpoints)
        if not (further and job.finished):
            most += max(kept - need.there, 0) if further else kept
            checkpoints.append(need.checkpoints)
    if discard:
        most += sum(sorted(checkpoints, reverse=True)[:at_a_time])
    return most


def probe(jobs: Sequence[Job], note: Callable[[str], None]) -> Estimates:
    """Time one cycle's episodes on each task and a few updates of each critic, and multiply.

    Args:
        jobs: The runs.
        note: Is told what is being measured.

    Returns:
        For each job the time that is left on one process, and the disk of a finished run.
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
            note(f"probing episodes of {config.task}")
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
            note(f"probing updates of {config.algo} with {config.critic} on {config.task}")
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
            there=_size(job.folder),
        )
    return estimates


def makespan(estimates: Estimates, at_a_time: int) -> float:
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
    few = replace(config.schedule, num_envs=1, gradient_steps=UPDATES)
    trainer, envs = _trainer(replace(config, schedule=few))
    with envs, torch_threads(config.threads or 1):
        trainer.collect(envs)
        trainer.learn()
        trainer.mean_losses()  # which waits for a GPU
        started = time.perf_counter()
        trainer.learn()
        trainer.mean_losses()
        seconds = (time.perf_counter() - started) / UPDATES
    capacity = trainer.config.replay.buffer_size
    checkpoint = sum(tensor.nbytes for tensor in trainer.tensors().values())
    weights = sum(tensor.nbytes for tensor in trainer.agent.state_dict().values())
    # The last two checkpoints are kept, and the latest and the best weights.
    return _Update(seconds, trainer.replay.nbytes / capacity, 2 * checkpoint, 2 * weights)


def _trainer(config: Config) -> tuple[Trainer, GoalVectorEnv]:
    """An untrained agent with a small memory, and its environments."""
    task = task_of(config)
    engine = (config.engine, config.threads or 1, config.async_envs, config.env_timeout)
    small = replace(config.replay, buffer_size=10 * task.spec.horizon * config.schedule.num_envs)
    trainer = Trainer(replace(config, replay=small), task, find_device(config.device))
    return trainer, make_envs(task.spec, config.schedule.num_envs, *engine)


def _size(folder: Path) -> int:
    """Bytes of the files in a folder, which may be missing, or written to."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(path, name), follow_symlinks=False).st_size
    return total


def in_gib(size: float) -> str:
    """A size as a person says it."""
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.0f} MiB"
