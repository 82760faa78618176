"""File names in a run folder. No other module spells them out."""

import re
from pathlib import Path

CONFIG = "config.json"
METRICS = "metrics.csv"
EVENTS = "events"
CHECKPOINTS = "checkpoints"
TRACKING = "tracking.json"
LOCK = ".lock"
VIDEO = "video.mp4"

_POSITION = re.compile(r"\d{6,}-\d{6,}")  # epoch, completed cycles


def checkpoint_folders(run: Path) -> list[Path]:
    """Return the checkpoints of a run, oldest first, without verifying them."""
    folder = run / CHECKPOINTS
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in found if _POSITION.fullmatch(path.name))


WEIGHTS = ("latest", "best")
"""Weights of the last epoch, and of the epoch with the highest success rate in its evaluation."""


def weights_file(folder: Path, which: str = "latest") -> Path:
    """Return the path of a run's weights."""
    return folder / f"{which}.safetensors"


def log_file(folder: Path) -> Path:
    """Return the path of a run's log in a sweep.

    It is next to the run folder, because a new run needs an empty folder.
    """
    return folder.with_name(f"{folder.name}.log")
