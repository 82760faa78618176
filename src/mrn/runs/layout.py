"""File names in a run folder. No other module spells them out.

A run folder may come from someone else. Links in it must not lead out of it.
"""

import os
import re
from pathlib import Path

from mrn.utils.errors import UserError
from mrn.utils.files import is_inside

CONFIG = "config.json"
METRICS = "metrics.csv"
EVENTS = "events"
CHECKPOINTS = "checkpoints"
TRACKING = "tracking.json"
LOCK = ".lock"
VIDEO = "video.mp4"

_POSITION = re.compile(r"\d{6,}-\d{6,}")  # epoch, completed cycles


def run_file(run: Path, name: str) -> Path:
    """Return the path of a file or folder in a run folder; it need not exist.

    Raises:
        UserError: It is a link that leads out of the run folder.
    """
    path = run / name
    if os.path.islink(path) and not is_inside(path, run):
        raise UserError(
            f"{path} is a link to {os.path.realpath(path)}, outside of the run folder; replace it "
            "with its target, or remove it"
        )
    return path


def check_links(run: Path) -> None:
    """Check that no link leads out of a run folder, before writing to it.

    Other subfolders are not written to, except for that of a tracker, which makes its own links.

    Raises:
        UserError: There is such a link; the message names it.
    """
    for name in os.listdir(run):
        run_file(run, name)
    for part in (CHECKPOINTS, EVENTS):
        for folder, below, files in os.walk(run / part):
            for name in (*below, *files):
                run_file(run, os.path.relpath(os.path.join(folder, name), run))


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
