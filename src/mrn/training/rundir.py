"""The folder of a run: settings, a row of metrics per epoch, TensorBoard events, weights."""

import csv
import io
import json
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from mrn.config import Config, flatten, from_dict
from mrn.envs import TaskShape
from mrn.errors import UserError
from mrn.training.files import parse_json, read_bounded, write_atomically
from mrn.training.lock import LOCK, RunLock

CHANGEABLE = ("epochs", "device", "threads", "workers", "worker_timeout", "checkpoint_every")
"""Settings that do not decide what a run computes, or only how far it goes, or (device, threads) in
which order sums are rounded."""

COLUMNS = (
    "epoch",
    "env_steps",
    "updates",
    "success",
    "success_any",
    "steps_to_success",
    "critic_loss",
    "actor_loss",
    "mean_q",
    "steps_per_second",
    "rollout_seconds",
    "update_seconds",
    "evaluation_seconds",
)
"""Of metrics.csv. `success` is at the last step; what was not measured is left empty."""

_PACKAGES = ("mrn", "torch", "numpy", "envpool", "gymnasium", "gymnasium-robotics", "mujoco")


class RunDir:
    """Writes a run's files; every one is whole at any moment, and only one process writes them."""

    def __init__(self, path: Path, config: Config, shape: TaskShape, resume: bool = False) -> None:
        """Take a folder: an empty one, or that of an earlier run of these settings to resume.

        Raises:
            UserError: The folder is taken or of another run; nothing in it was changed.
        """
        self.path = path
        self.rows: list[dict[str, Any]] = []
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
            write_atomically(path / "config.json", json.dumps(about, indent=2).encode())
        except BaseException:
            self.lock.close()
            raise

    def restore(self, rows: list[dict[str, Any]]) -> None:
        """Begin with the metrics of an earlier part of the run, and no later ones."""
        self.rows = list(rows)
        self._write_metrics()

    def log(self, row: dict[str, Any]) -> None:
        """Add an epoch's metrics to metrics.csv and to TensorBoard."""
        self.rows.append(row)
        self._write_metrics()
        if self.events is None:
            from torch.utils.tensorboard import SummaryWriter

            # Events of steps that are computed again, after a crash, are replaced.
            self.events = SummaryWriter(str(self.path / "events"), purge_step=row["env_steps"])
        for name, value in row.items():
            if value is not None and name not in ("epoch", "env_steps"):
                self.events.add_scalar(name, value, row["env_steps"])
        self.events.flush()

    def _write_metrics(self) -> None:
        table = io.StringIO()
        writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        write_atomically(self.path / "metrics.csv", table.getvalue().encode())

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
    file = path / "config.json"
    if not file.exists():
        raise UserError(f"{path} is no run folder: it has no config.json")
    about = parse_json(read_bounded(file), str(file))
    return from_dict(Config, about.get("config") if isinstance(about, dict) else None, str(file))


def read_metrics(path: Path) -> list[dict[str, float | None]]:
    """The rows of a metrics.csv, one per epoch; None where nothing was measured.

    Raises:
        UserError: It is missing or damaged; says in which line.
    """
    text = read_bounded(path).decode(errors="replace")
    lines = list(csv.reader(io.StringIO(text)))
    remedy = "if it is that of a run, mrn resume writes it anew from the last checkpoint"
    if not lines or tuple(lines[0]) != COLUMNS:
        raise UserError(f"{path} is not the metrics of a run: its first line is not the columns")
    rows: list[dict[str, float | None]] = []
    for number, line in enumerate(lines[1:], start=1):
        try:
            values = [float(value) if value else None for value in line]
            rows.append(dict(zip(COLUMNS, values, strict=True)))
        except ValueError:
            raise UserError(f"{path} is damaged in line {number + 1}; {remedy}") from None
        if values[0] != number or values[1] is None:
            raise UserError(f"{path} is damaged: line {number + 1} is not epoch {number}; {remedy}")
    if not text.endswith("\n"):
        raise UserError(f"{path} is damaged: its last line is cut off; {remedy}")
    return rows


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
    file, done = path / "metrics.csv", before.epochs or 0
    if (now.epochs or 0) <= done or (path / "checkpoints").exists() or not file.exists():
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
