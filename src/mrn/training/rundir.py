"""The folder of a run: settings, a row of metrics per epoch, TensorBoard events, weights."""

import csv
import io
import json
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from mrn.config import Config
from mrn.envs import TaskShape
from mrn.errors import UserError

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
    """Writes a run's files; every one is whole at any moment."""

    def __init__(self, path: Path, config: Config, shape: TaskShape) -> None:
        """Create the folder, which must not hold anything yet, and write config.json."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            occupied = any(path.iterdir())
        except OSError as error:
            raise UserError(f"cannot make the run folder {path}: {error}") from None
        if occupied:
            raise UserError(
                f"{path} exists already and is not empty; nothing was overwritten. Choose another "
                "--run-dir or --seed, or remove the folder"
            )
        from torch.utils.tensorboard import SummaryWriter

        self.path = path
        self.rows: list[dict[str, Any]] = []
        about = {"config": config.to_dict(), "task": vars(shape), "versions": versions()}
        write_atomically(path / "config.json", json.dumps(about, indent=2).encode())
        self.events = SummaryWriter(str(path / "events"))

    def log(self, row: dict[str, Any]) -> None:
        """Add an epoch's metrics to metrics.csv and to TensorBoard."""
        self.rows.append(row)
        table = io.StringIO()
        writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        write_atomically(self.path / "metrics.csv", table.getvalue().encode())
        for name, value in row.items():
            if value is not None and name not in ("epoch", "env_steps"):
                self.events.add_scalar(name, value, row["env_steps"])
        self.events.flush()

    def close(self) -> None:
        """Close the event file."""
        self.events.close()

    def __enter__(self) -> "RunDir":
        """Close on leaving the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the event file."""
        self.close()


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide a result."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file so that a reader, or a crash, finds the old one or the new one, whole."""
    aside = path.with_name(f".{path.name}.new")
    try:
        with open(aside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise UserError(f"cannot write {path}: {error.strerror}") from error
