"""The folder of a run: settings, a row of metrics per epoch, TensorBoard events, weights."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mrn.config import Config, flatten
from mrn.distributed import launch_command
from mrn.envs import TaskSpec
from mrn.runs.layout import CONFIG, EVENTS, LOCK, METRICS, checkpoint_folders
from mrn.runs.lock import RunLock
from mrn.runs.metrics import COLUMNS, Row, is_finished, read_metrics, write_metrics
from mrn.runs.provenance import provenance, read_run_info
from mrn.runs.tensorboard import Events
from mrn.utils.errors import UserError
from mrn.utils.files import temp_path, write_atomically

MUTABLE_SETTINGS = (
    "epochs",
    "stop_at",
    "device",
    "threads",
    "async_envs",
    "env_timeout",
    "checkpoint_every",
)
"""Settings that do not decide what a run computes, or only how far it goes; or (device, threads) in
which order sums are rounded, from which two runs drift apart (docs/reproduce.md, Threads)."""


class RunDir:
    """Writes a run's files; every one is whole at any moment, and only one process writes them."""

    def __init__(
        self,
        path: Path,
        config: Config,
        spec: TaskSpec,
        resume: bool = False,
        metrics: Iterable[str] = (),
        processes: int = 1,
        place: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Take a folder: an empty one, or that of an earlier run of these settings to resume.

        Args:
            path: The folder.
            config: The run's settings.
            spec: Its task.
            resume: Whether an earlier run there is to go on.
            metrics: The algorithm's own columns.
            processes: How many train the run.
            place: Where: `threads` and `device`.

        Raises:
            UserError: The folder is taken or of another run; nothing in it was changed.
        """
        self.path, self.columns = path, (*COLUMNS, *metrics)
        self.rows: list[Row] = []
        self.events: Events | None = None  # made with the first row
        self.config = config
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not resume and _holds_something(path):
                raise UserError(_taken(path))
            self.lock = RunLock(path)
        except OSError as error:
            raise UserError(f"cannot make the run folder {path}: {error}") from None
        try:
            if resume:
                is_finished_run(path, config, spec)  # refuses other settings
            about = {"config": config.to_dict(), "task": vars(spec), "processes": processes}
            about |= provenance(path, place)
            self.about = json.dumps(about, indent=2).encode()
        except BaseException:
            self.lock.close()
            raise

    def begin(self, rows: list[Row] | None) -> None:
        """Write the settings, and the metrics of an earlier part of the run, and no later ones."""
        write_atomically(self.path / CONFIG, self.about)
        if rows is not None:
            self.rows = list(rows)
            self._write_metrics()

    def log(self, row: Row) -> None:
        """Add an epoch's metrics to metrics.csv and to TensorBoard."""
        self.rows.append(row)
        self._write_metrics()
        if self.events is None:
            self.events = Events(self.path / EVENTS, self.config, row["env_steps"])
        self.events.log(row)

    def _write_metrics(self) -> None:
        write_metrics(self.path / METRICS, self.columns, self.rows)

    def close(self) -> None:
        """Close the event file and leave the folder to others."""
        if self.events is not None:
            self.events.close()
        self.lock.close()

    def __enter__(self) -> "RunDir":
        """Close on leaving the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the event file, and leave the folder to others."""
        self.close()


class NullRunDir:
    """The run's folder as the processes see it that do not lead: others write to it."""

    rows: Sequence[Row] = ()

    def begin(self, rows: list[Row] | None) -> None:
        """Leave it to the leader."""

    def log(self, row: Row) -> None:
        """Leave it to the leader."""

    def __enter__(self) -> "NullRunDir":
        """Nothing to close on leaving the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""


def check_settings(
    before: Config,
    now: Config,
    where: str,
    remedy: str = "Resume with those it was started with, or give these a --variant or --run-dir",
) -> None:
    """Refuse to go on with settings that would have given another run.

    Raises:
        UserError: Lists the fields that differ.
    """
    saved, given = flatten(before.to_dict()), flatten(now.to_dict())
    names = [
        name for name in saved | given if name not in MUTABLE_SETTINGS
    ]  # agents have their own
    differing = _differing(names, saved, given)
    if differing:
        raise UserError(f"{where} belongs to other settings: {differing}. {remedy}")


def check_task(before: Mapping[str, Any], now: TaskSpec, where: str) -> None:
    """Refuse to go on in an environment that has changed: the replay would mean other things.

    Raises:
        UserError: Lists what differs.
    """
    spec = json.loads(json.dumps(vars(now)))  # as it was written
    differing = _differing([name for name in before if name in spec], before, spec)
    if differing:
        raise UserError(
            f"{where} was begun in an environment that has changed since: {differing}. Resume it "
            "with the environment as it was, or choose another --run-dir"
        )


def _differing(names: Iterable[str], before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{name} was {before.get(name)!r}, now {now.get(name)!r}"
        for name in names
        if before.get(name) != now.get(name)
    )


def _holds_something(path: Path) -> bool:
    # A process killed in its very first write leaves no more than these, and nothing is lost.
    empty = {LOCK, temp_path(path / CONFIG).name}
    return any(file.name not in empty for file in path.iterdir())


def is_finished_run(path: Path, config: Config, spec: TaskSpec) -> bool:
    """Whether the run in a folder has nothing left to do.

    Raises:
        UserError: The folder is of another run or environment, has more epochs than it is to have,
            or cannot go on because its checkpoints were removed.
    """
    if not _holds_something(path):
        return False
    about = read_run_info(path)
    before = about.config
    check_settings(before, config, str(path))
    check_task(about.task, spec, str(path))
    gone = "and it has no checkpoint to go on from. Remove the folder to start again"
    saved = bool(checkpoint_folders(path))
    try:
        rows = read_metrics(path / METRICS) if (path / METRICS).exists() else []
    except UserError as error:
        if saved:  # the metrics are written anew from the checkpoint
            return False
        raise UserError(f"{error}, {gone}") from None
    done = len(rows)
    if (config.epochs or done) < done:
        raise UserError(f"{path} has {done} epochs already: --epochs must be at least {done}")
    if is_finished(rows, config.epochs, config.stop_at):
        return True
    # An epoch is listed before its checkpoint is written: the first one may be missing yet.
    written = done > before.checkpoint_every or done >= (before.epochs or done + 1)
    if rows and written and not saved:
        raise UserError(f"{path} ended after {done} epochs, {gone}")
    return False


def _taken(path: Path) -> str:
    """What to say of a folder that holds something."""
    what = f"{path} exists already and is not empty"
    try:
        processes = read_run_info(path, imports=False).processes
        command = f"{launch_command(processes)} resume {shlex.quote(str(path))}"
        what = f"{path} holds a run already; to go on with it: {command}"
    except UserError:
        pass
    return (
        f"{what}; nothing was overwritten. Other settings need a name, --variant NAME; or choose "
        "another --seed or --run-dir"
    )
