"""The folder of a run: settings, a row of metrics per epoch, TensorBoard events, weights."""

import json
import platform
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from mrn.config import Config, flatten
from mrn.envs import TaskShape
from mrn.errors import UserError
from mrn.files import parse_json, read_bounded, write_atomically
from mrn.training.layout import CHECKPOINTS, CONFIG, EVENTS, LOCK, METRICS
from mrn.training.lock import RunLock
from mrn.training.metrics import COLUMNS, Row, read_metrics, write_metrics

CHANGEABLE = ("epochs", "device", "threads", "workers", "worker_timeout", "checkpoint_every")
"""Settings that do not decide what a run computes, or only how far it goes, or (device, threads) in
which order sums are rounded."""

_PACKAGES = ("mrn", "torch", "numpy", "envpool", "gymnasium", "gymnasium-robotics", "mujoco")


class RunDir:
    """Writes a run's files; every one is whole at any moment, and only one process writes them."""

    def __init__(
        self,
        path: Path,
        config: Config,
        shape: TaskShape,
        resume: bool = False,
        metrics: Iterable[str] = (),
    ) -> None:
        """Take a folder: an empty one, or that of an earlier run of these settings to resume.

        Args:
            path: The folder.
            config: The run's settings.
            shape: Its task.
            resume: Whether an earlier run there is to go on.
            metrics: The learner's own columns.

        Raises:
            UserError: The folder is taken or of another run; nothing in it was changed.
        """
        self.path, self.columns = path, (*COLUMNS, *metrics)
        self.rows: list[Row] = []
        self.events: Any = None  # made with the first row
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not resume and _holds_something(path):
                raise UserError(_taken(path))
            self.lock = RunLock(path)
        except OSError as error:
            raise UserError(f"cannot make the run folder {path}: {error}") from None
        try:
            if _holds_something(path):
                before = read_settings(path)
                check_settings(before, config, str(path))
                _check_goes_on(path, before, config)
            about = {"config": config.to_dict(), "task": vars(shape), "versions": versions()}
            write_atomically(path / CONFIG, json.dumps(about, indent=2).encode())
        except BaseException:
            self.lock.close()
            raise

    def restore(self, rows: list[Row]) -> None:
        """Begin with the metrics of an earlier part of the run, and no later ones."""
        self.rows = list(rows)
        self._write_metrics()

    def log(self, row: Row) -> None:
        """Add an epoch's metrics to metrics.csv and to TensorBoard."""
        self.rows.append(row)
        self._write_metrics()
        if self.events is None:
            from torch.utils.tensorboard import SummaryWriter

            # Events of steps that are computed again, after a crash, are replaced.
            self.events = SummaryWriter(str(self.path / EVENTS), purge_step=row["env_steps"])
        for name, value in row.items():
            if value is not None and name not in ("epoch", "env_steps"):
                self.events.add_scalar(name, value, row["env_steps"])
        self.events.flush()

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
        """Close the event file."""
        self.close()


def read_settings(path: Path) -> Config:
    """The settings of the run in a folder.

    Raises:
        UserError: It is no run folder, or its config.json is damaged.
    """
    return read_about(path)[0]


def read_about(path: Path) -> tuple[Config, dict[str, str]]:
    """The settings of the run in a folder, and the versions it was trained with.

    Raises:
        UserError: It is no run folder, or its config.json is damaged.
    """
    file = path / CONFIG
    if not file.exists():
        raise UserError(f"{path} is no run folder: it has no {CONFIG}")
    about = parse_json(read_bounded(file), str(file))
    if not isinstance(about, dict):
        raise UserError(f"{file} is damaged: it is not the settings of a run")
    found = about.get("versions")
    found = found if isinstance(found, dict) else {}
    versions = {str(name): str(version) for name, version in found.items()}
    return Config.from_json(about.get("config"), str(file)), versions


def check_settings(before: Config, now: Config, where: str) -> None:
    """Refuse to go on with settings that would have given another run.

    Raises:
        UserError: Lists the fields that differ.
    """
    saved, given = flatten(before.to_dict()), flatten(now.to_dict())
    differing = [
        f"{name} was {saved[name]!r}, now {given[name]!r}"
        for name in saved
        if saved[name] != given[name] and name not in CHANGEABLE
    ]
    if differing:
        raise UserError(
            f"{where} belongs to other settings: {'; '.join(differing)}. Resume with those it was "
            "started with, or choose another --run-dir"
        )


def _holds_something(path: Path) -> bool:
    return any(file.name != LOCK for file in path.iterdir())


def _check_goes_on(path: Path, before: Config, now: Config) -> None:
    """Refuse to train a finished run longer when its checkpoints are gone: it would start anew."""
    file, done = path / METRICS, before.epochs or 0
    if (now.epochs or 0) <= done or (path / CHECKPOINTS).exists() or not file.exists():
        return
    if len(read_metrics(file)) >= done:
        raise UserError(
            f"{path} is finished after {done} epochs and its checkpoints were removed: it cannot "
            "be trained longer. Remove the folder to start again"
        )


def _taken(path: Path) -> str:
    """What to say of a folder that holds something."""
    what = f"{path} exists already and is not empty"
    try:
        read_settings(path)
        what = f"{path} holds a run already; to go on with it: mrn resume {path}"
    except UserError:
        pass
    return f"{what}; nothing was overwritten. Or choose another --run-dir or --seed"


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide a result."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
