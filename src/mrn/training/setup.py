"""Preparation of a training run: resolved settings, trainer, environments and run folder."""

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from mrn.config import Config
from mrn.critics import find_critic
from mrn.distributed import Ranks
from mrn.envs import GoalVectorEnv, Task, find_task, make_envs
from mrn.envs.engines import choose_engine
from mrn.envs.gymnasium_engine import start_limit
from mrn.envs.tasks import OBJECT_PREFIX
from mrn.runs.checkpoint import Checkpoints
from mrn.runs.null_run_dir import NullRunDir
from mrn.runs.provenance import check_processes, resume_command, with_original_machine
from mrn.runs.run_dir import RunDir, is_finished_run
from mrn.runs.verify import confirm_finished
from mrn.training.precision import resolve_precision
from mrn.training.progress import TrainingProgress
from mrn.training.schedule import resolve_epochs
from mrn.training.trainer import Trainer
from mrn.utils.device import default_threads, find_device, memory_errors, torch_threads
from mrn.utils.errors import RunError, UserError
from mrn.utils.naming import NO_CRITIC
from mrn.utils.precision import Precision
from mrn.utils.signals import InterruptHandler
from mrn.utils.validation import check_unicode

LESS_MEMORY = "lower hidden_dim, batch_size, num_envs or buffer_size"


@dataclass(frozen=True)
class RunContext:
    """A run with every default resolved, before it allocates memory or writes files."""

    config: Config
    """Settings, including the number of epochs."""
    folder: Path
    resume: bool
    task: Task
    engine: str
    device: torch.device
    threads: int
    precision: Precision
    ranks: Ranks

    @property
    def epochs(self) -> int:
        """Number of epochs to train."""
        assert self.config.epochs is not None  # `prepare_run` fills it in
        return self.config.epochs

    @property
    def resume_command(self) -> str:
        """Shell command that resumes the run, or a call for an environment passed as an object."""
        if self.task.spec.env_id.startswith(OBJECT_PREFIX):
            return f"mrn.train(ENV, run_dir={str(self.folder)!r}, resume=True)"
        return resume_command(self.folder, self.config, self.ranks.size)

    def is_finished(self) -> bool:
        """Return whether the run to resume is already finished."""
        exists = self.resume and self.folder.is_dir()
        return (
            exists
            and is_finished_run(self.folder, self.config, self.task.spec)
            and confirm_finished(self.folder, self.config)
        )

    def make_trainer(self) -> Trainer:
        """Build the trainer of this rank, at the start of the run."""
        if self.resume:
            check_processes(self.folder, self.ranks.size)
        with memory_errors(LESS_MEMORY):
            return Trainer(self.config, self.task, self.device, self.ranks, self.precision)

    def make_envs(self, count: int) -> GoalVectorEnv:
        """Create `count` environments on this rank."""
        config = self.config
        return make_envs(
            self.task.spec,
            count,
            self.engine,
            self.threads,
            config.async_envs,
            config.env_timeout,
            first=self.ranks.rank * count,
        )

    def open_run_dir(self, metrics: tuple[str, ...]) -> RunDir | NullRunDir:
        """Lock the run folder on rank 0."""
        if not self.ranks.is_main:
            return NullRunDir(self.folder)
        return RunDir(
            self.folder,
            self.config,
            self.task.spec,
            resume=self.resume,
            metrics=metrics,
            processes=self.ranks.size,
            machine={
                "engine": self.engine,
                "threads": str(self.threads),
                "device": self.device.type,
                "precision": self.precision,
            },
        )


def prepare_run(config: Config, folder: Path, resume: bool, ranks: Ranks) -> RunContext:
    """Check the names in the settings, and resolve what they leave open, such as the device.

    Raises:
        UserError: A name is unknown, or the environment, the device or `eval_interval` does not
            fit.
    """
    check_unicode("run_dir", folder)
    if config.critic != NO_CRITIC:
        find_critic(config.critic)
    # config.json keeps the settings as given; only this process uses the original machine's.
    local = with_original_machine(config, folder) if resume else config
    device = find_device(local.device)
    try:
        with start_limit(config.env_timeout):
            task = find_task(config.task, config.reward_shift, config.env_kwargs)
    except multiprocessing.TimeoutError as error:
        raise UserError(f"cannot make environment {config.task!r}: {error}") from None
    return RunContext(
        config=resolve_epochs(config, task),
        folder=folder,
        resume=resume,
        task=task,
        engine=choose_engine(task.spec, local.engine),
        device=device,
        threads=local.threads or default_threads(),
        precision=resolve_precision(local, device, ranks),
        ranks=ranks,
    )


@dataclass(frozen=True)
class ActiveRun:
    """A run in training, with its open resources."""

    context: RunContext
    trainer: Trainer
    envs: GoalVectorEnv
    eval_envs: GoalVectorEnv
    checkpoints: Checkpoints
    run_dir: RunDir | NullRunDir
    display: TrainingProgress
    interrupts: InterruptHandler


@contextmanager
def open_run(context: RunContext, trainer: Trainer, progress: bool) -> Iterator[ActiveRun]:
    """Open the environments, the run folder and the progress display.

    Raises:
        UserError: The environments do not fit, or the folder belongs to another run.
        RunError: Memory is exhausted during training.
    """
    config, ranks, schedule = context.config, context.ranks, context.config.schedule
    title = f"{context.task.spec.name} {config.method}"
    num_eval_envs = -(-min(schedule.num_envs, schedule.eval_episodes or 1) // ranks.size)
    with (
        memory_errors(f"start a new run with less: {LESS_MEMORY}", RunError),
        torch_threads(context.threads),
        context.make_envs(schedule.num_envs // ranks.size) as envs,
        context.make_envs(num_eval_envs) as eval_envs,
        context.open_run_dir(trainer.metrics) as run_dir,
        TrainingProgress(title, context.epochs, schedule.cycles, progress) as display,
        InterruptHandler("saving after this cycle", ranks) as interrupts,
    ):
        checkpoints = Checkpoints(context.folder, run_dir.check)
        yield ActiveRun(
            context, trainer, envs, eval_envs, checkpoints, run_dir, display, interrupts
        )
