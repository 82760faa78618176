"""More training for an agent that has a run folder."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from mrn.agent import Agent
from mrn.runs.layout import METRICS, checkpoint_folders, run_file
from mrn.runs.metrics import read_metrics
from mrn.runs.verify import read_saved
from mrn.training.callbacks import Callback, EpochFunction, as_callbacks
from mrn.training.loop import run
from mrn.utils.errors import UserError
from mrn.utils.validation import PositiveInt, check


def extend_run(
    agent: Agent, steps: int, progress: bool, callbacks: Sequence[Callback | EpochFunction]
) -> None:
    """Continue the run of an agent, in place; `Agent.learn` describes the arguments.

    Raises:
        UserError: The agent has no run folder, its checkpoints are gone, or it has the weights of
            the best epoch.
    """
    check("steps", steps, PositiveInt)
    folder = agent.run_dir
    if folder is None:
        raise UserError(
            "learn continues from a checkpoint, but this agent has no run folder: weights files "
            "and zoo policies have no checkpoint. Load a run folder with mrn.load, or train a new "
            "run with mrn.train"
        )
    if agent.selection is not None:
        raise UserError(
            f"learn continues from the last checkpoint of {folder}, not from its best epoch: load "
            "the run with weights='latest'"
        )
    if not checkpoint_folders(folder):
        raise UserError(
            f"{folder} has no checkpoint to continue from: a sweep with --discard-checkpoints, or "
            "someone else, deleted it. Train a new run with more epochs"
        )
    config, file, saved = agent.config, run_file(folder, METRICS), read_saved(folder)
    logged = len(read_metrics(file)) if file.exists() else 0
    # A killed process has logged at most these epochs since its checkpoint.
    completed = min(logged, len(saved.rows if saved else ()) + config.checkpoint_every)
    epoch_steps = config.schedule.cycles * config.schedule.num_envs * agent.spec.horizon
    longer = replace(config, epochs=completed + ceil(steps / epoch_steps), stop_at=None)
    trained = run(longer, folder, progress, resume=True, callbacks=as_callbacks(callbacks))
    agent.load_state_dict(trained.state_dict())
    agent.config, agent.epoch = trained.config, trained.epoch
