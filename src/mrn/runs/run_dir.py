"""Run folder: settings, one row of metrics per epoch, TensorBoard events and weights."""

import json
import shutil
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mrn.config import Config, flatten
from mrn.envs import TaskSpec
from mrn.runs.layout import (
    CHECKPOINTS,
    CONFIG,
    EVENTS,
    LOCK,
    METRICS,
    check_links,
    checkpoint_folders,
    run_file,
)
from mrn.runs.lock import RunLock
from mrn.runs.metrics import COLUMNS, Row, is_finished, read_metrics, write_metrics
from mrn.runs.provenance import provenance, read_run_info, resume_command
from mrn.runs.tensorboard import Events
from mrn.utils.errors import UserError
from mrn.utils.files import is_temp_file, write_atomically

MUTABLE_SETTINGS = (
    "epochs",
    "stop_at",
    "device",
    "threads",
    "async_envs",
    "env_timeout",
    "checkpoint_every",
)
"""Settings that may change when a run resumes. They do not affect what a run computes, only its
length. The exceptions, device and threads, change rounding (docs/sweeps.md, Threads)."""


class RunDir:
    """Exclusive writer of a run's files. Each file is replaced atomically."""

    def __init__(
        self,
        path: Path,
        config: Config,
        spec: TaskSpec,
        resume: bool = False,
        metrics: Iterable[str] = (),
        processes: int = 1,
        machine: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Lock an empty folder, or the folder of a run to resume.

        Args:
            path: The folder.
            config: Settings of the run.
            spec: Specification of the task.
            resume: Whether to resume the run in the folder, if any.
            metrics: Names of the algorithm's metrics.
            processes: Number of processes that train the run.
            machine: `threads`, `device` and `precision` of the run.

        Raises:
            UserError: The folder is not empty, belongs to another run, or has a link that leads
                out of it. Nothing was changed. A run that failed before its first epoch and
                checkpoint does not count.
        """
        self.path, self.columns = path, (*COLUMNS, *metrics)
        self.rows: list[Row] = []
        self.events: Events | None = None  # opened with the first row
        self.config = config
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not resume and _has_content(path):
                raise UserError(_folder_taken(path))
            check_links(path)
            self.lock = RunLock(path)
        except OSError as error:
            raise UserError(f"cannot create the run folder {path}: {error.strerror}") from None
        try:
            has_content = _has_content(path)
            if has_content and not resume:  # since the check above
                raise UserError(_folder_taken(path))
            is_finished_run(path, config, spec)  # raises if the settings differ
            about = {"config": config.to_dict(), "task": vars(spec), "processes": processes}
            about |= provenance(path if has_content else None, machine)
            self.about = json.dumps(about, indent=2).encode()
        except BaseException:
            self.lock.close()
            raise

    def check(self) -> None:
        """Check that the folder is still the one that was locked; call it before every write.

        Raises:
            RunError: It was removed or replaced.
        """
        self.lock.check()

    def begin(self, rows: list[Row] | None) -> int:
        """Write the settings, and the metrics of a resumed run.

        Args:
            rows: Metrics so far; None to start from scratch.

        Returns:
            The number of epochs without a checkpoint, whose metrics were removed.
        """
        self.check()
        for folder in (self.path, self.path / CHECKPOINTS):
            for file in filter(is_temp_file, folder.iterdir() if folder.is_dir() else ()):
                file.unlink(missing_ok=True)  # a killed process left it behind
        if rows is None:  # of a run that failed before its first checkpoint
            shutil.rmtree(self.path / EVENTS, ignore_errors=True)
        has_metrics = (self.path / METRICS).exists()
        repeated = len(read_metrics(self.path / METRICS)) if has_metrics and rows is None else 0
        if has_metrics and rows:
            self._warn_if_replaced(rows)
        self.rows = list(rows or [])
        # Before the settings: otherwise, after a kill in between, `is_finished_run` would compare
        # the old metrics with a new checkpoint_every.
        if repeated or rows is not None:
            self._write_metrics()
        write_atomically(self.path / CONFIG, self.about)
        return repeated

    def _warn_if_replaced(self, rows: list[Row]) -> None:
        """Warn if metrics.csv is damaged or differs from the metrics in the checkpoint."""
        try:
            if read_metrics(self.path / METRICS)[: len(rows)] == rows:
                return
            problem = "differs from the checkpoint"
        except UserError:
            problem = "is damaged, unlike the checkpoint"
        warnings.warn(f"{self.path / METRICS} {problem}, which restores it", stacklevel=2)

    def log(self, row: Row) -> None:
        """Append an epoch to metrics.csv and to TensorBoard."""
        self.check()
        self.rows.append(row)
        self._write_metrics()
        self._open_events(row).log_epoch(row)

    def log_cycle(self, row: Row) -> None:
        """Append a cycle to TensorBoard."""
        self._open_events(row).log_cycle(row)

    def _open_events(self, row: Row) -> Events:
        """Return the event files, which are opened for the first row of this process."""
        if self.events is None:
            self.check()
            self.events = Events(self.path / EVENTS, self.config, row["env_steps"])
        return self.events

    def _write_metrics(self) -> None:
        write_metrics(self.path / METRICS, self.columns, self.rows)

    def close(self) -> None:
        """Close the event file and release the lock."""
        if self.events is not None:
            self.events.close()
        self.lock.close()

    def __enter__(self) -> "RunDir":
        """Return the run folder."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the run folder."""
        self.close()


def check_settings(
    before: Config,
    now: Config,
    where: str,
    remedy: str = "Resume with the original settings, or choose another variant or run_dir",
) -> None:
    """Check that a run resumes with the settings it started with.

    Args:
        before: Settings of the run so far.
        now: Settings to resume with.
        where: Name of the run for the error message.
        remedy: Last sentence of the error message.

    Raises:
        UserError: Settings other than `MUTABLE_SETTINGS` differ; lists them.
    """
    saved, given = flatten(before.to_dict()), flatten(now.to_dict())
    names = [name for name in saved | given if name not in MUTABLE_SETTINGS]
    if changes := _changes(names, saved, given):
        raise UserError(f"{where} has different settings: {changes}. {remedy}")


def check_task(before: Mapping[str, Any], now: TaskSpec, where: str) -> None:
    """Check that a run resumes in the environment it started in.

    Raises:
        UserError: The specification of the task differs, so the replay buffer is not valid.
    """
    spec = json.loads(json.dumps(vars(now)))  # the same types as in config.json
    if changes := _changes([name for name in before if name in spec], before, spec):
        raise UserError(
            f"the environment of {where} has changed since the run started: {changes}. Resume with "
            "the original environment, or choose another run_dir"
        )


def _changes(names: Iterable[str], before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{name} was {before.get(name)!r}, now {now.get(name)!r}"
        for name in names
        if before.get(name) != now.get(name)
    )


def _has_content(path: Path) -> bool:
    """Return whether a folder holds more than a run that failed before its first checkpoint."""
    names = {file.name for file in path.iterdir() if not is_temp_file(file)} - {LOCK}
    if names - {EVENTS} != {CONFIG}:
        return bool(names)
    try:
        read_run_info(path)
    except UserError:  # a file of another program
        return True
    return False


def is_finished_run(path: Path, config: Config, spec: TaskSpec) -> bool:
    """Return whether the run in a folder has no epoch left to train.

    Raises:
        UserError: The folder belongs to another run or environment, has more epochs than
            requested, or its checkpoints were removed before the run finished.
    """
    if not _has_content(path):
        return False
    info = read_run_info(path)
    before = info.config
    check_settings(before, config, str(path))
    check_task(info.task, spec, str(path))
    no_checkpoint = "and it has no checkpoint to resume from. Remove the folder to start over"
    has_checkpoint = bool(checkpoint_folders(path))
    try:
        file = run_file(path, METRICS)
        rows = read_metrics(file) if file.exists() else []
    except UserError as error:
        if has_checkpoint:  # the checkpoint restores the metrics
            return False
        raise UserError(f"{error}, {no_checkpoint}") from None
    completed = len(rows)
    if (config.epochs or completed) < completed:
        raise UserError(
            f"{path} already has {completed} epochs; epochs must be at least {completed}, got "
            f"{config.epochs}"
        )
    if is_finished(rows, config.epochs, config.stop_at):
        return True
    # An epoch is logged before its checkpoint is written, so the first checkpoint may be missing.
    expected = completed > before.checkpoint_every or completed >= (before.epochs or completed + 1)
    if rows and expected and not has_checkpoint:
        raise UserError(f"{path} stopped after {completed} epochs, {no_checkpoint}")
    return False


def _folder_taken(path: Path) -> str:
    """Return the error message for a folder that is not empty."""
    problem = f"{path} already exists and is not empty"
    try:
        info = read_run_info(path)
        command = resume_command(path, info.config, info.processes)
        problem = f"{path} already contains a run; resume it with: {command}"
    except UserError:
        pass
    return (
        f"{problem}; nothing was overwritten. For a new run, choose another variant, seed or "
        "run_dir"
    )
