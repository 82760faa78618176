"""Length of a run: its number of epochs, and the cycles of an evaluation interval."""

import math
from dataclasses import replace

from mrn.config import Config
from mrn.envs import Task
from mrn.utils.errors import UserError


def resolve_epochs(config: Config, task: Task) -> Config:
    """Return the settings with `epochs` filled in and `cycles` as `eval_interval` requires.

    An epoch ends with an evaluation, so the interval sets its length. The default number of epochs
    changes with it, such that the run has as many steps as without it, rounded up to whole epochs.

    Raises:
        UserError: The interval is not a whole number of cycles.
    """
    schedule = config.schedule
    cycles, epochs = schedule.cycles, config.epochs or task.epochs
    if schedule.eval_interval is not None:
        cycles = _interval_cycles(schedule.eval_interval, schedule.num_envs, task.spec.horizon)
        epochs = config.epochs or math.ceil(epochs * schedule.cycles / cycles)
    return replace(config, epochs=epochs, schedule=replace(schedule, cycles=cycles))


def _interval_cycles(interval: int, num_envs: int, horizon: int) -> int:
    """Return the number of cycles in an evaluation interval."""
    steps = num_envs * horizon
    cycles, rest = divmod(interval, steps)
    if not rest:
        return cycles
    nearest = [f"{count * steps:,}" for count in (cycles, cycles + 1) if count]
    raise UserError(
        f"eval_interval must be a multiple of {steps:,}, the steps of a cycle ({num_envs} "
        f"environments x {horizon} steps), got {interval:,}; nearest: {' or '.join(nearest)}"
    )
