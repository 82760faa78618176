"""What is where in a run's folder: the only place that spells these names."""

import re
from pathlib import Path

CONFIG = "config.json"
METRICS = "metrics.csv"
EVENTS = "events"
CHECKPOINTS = "checkpoints"
TRACKING = "tracking.json"
LOCK = ".lock"
VIDEO = "video.mp4"

_POSITION = re.compile(r"\d{6,}-\d{6,}")  # epoch, cycles done in it


def checkpoint_folders(run: Path) -> list[Path]:
    """The checkpoints of a run, oldest first; whether they are whole is another question."""
    folder = run / CHECKPOINTS
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in found if _POSITION.fullmatch(path.name))


WEIGHTS = ("latest", "best")
"""Of the last epoch, and of the epoch with the highest success rate."""


def weights_file(folder: Path, which: str = "latest") -> Path:
    """The file of some weights of a run."""
    return folder / f"{which}.safetensors"


def log_file(folder: Path) -> Path:
    """Where a sweep keeps what a run prints: beside its folder, which must be new or a run's."""
    return folder.with_name(f"{folder.name}.log")
