"""Compare metrics.csv and config.json, which have no checksum, with checkpoints and weights."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mrn.config import Config
from mrn.runs.layout import CONFIG, METRICS, checkpoint_folders, run_file, weights_file
from mrn.runs.metrics import Metrics, is_finished, read_metrics, upgrade_row
from mrn.runs.policy_file import read_about
from mrn.runs.run_dir import check_settings
from mrn.utils.errors import UserError
from mrn.utils.files import checksum, is_inside, parse_json, read_limited


class Saved(NamedTuple):
    """Settings and metrics of a run in a checkpoint."""

    path: Path
    config: Any
    rows: list[Metrics]


def confirm_finished(run: Path, config: Config) -> bool:
    """Return whether checkpoint or weights agree with metrics.csv that a run is finished.

    If the newest checkpoint disagrees, the run resumes from it, which restores the metrics. Only
    small files are read: whoever loads the weights verifies them.

    Raises:
        UserError: The run has no checkpoint, and its weights are missing or of an earlier epoch.
    """
    saved, rows = read_saved(run), read_metrics(run_file(run, METRICS))
    if saved:
        return _agree(saved, rows) and is_finished(saved.rows, config.epochs, config.stop_at)
    about = read_about(run_file(run, weights_file(run).name))
    epoch, completed = about.get("epoch"), len(rows)
    if isinstance(epoch, int) and epoch < completed:  # unknown in files of earlier versions
        raise UserError(
            f"{run / METRICS} is damaged: it has {completed} epochs, but the weights are of epoch "
            f"{epoch}, and there is no checkpoint to resume from. Remove the folder to start over"
        )
    return True


def read_saved(run: Path) -> Saved | None:
    """Return what the newest valid checkpoint contains; None without a checkpoint.

    The weights and the replay buffer are not verified.
    """
    found = (_read(folder, run) for folder in reversed(checkpoint_folders(run)))
    return next(filter(None, found), None)


def check_saved(saved: Saved, run: Path, config: Config, rows: Sequence[Metrics]) -> None:
    """Check that settings and metrics of a run agree with a checkpoint that was read before.

    Epochs after the checkpoint cannot be checked.

    Raises:
        UserError: They differ; the message names the file.
    """
    before = Config.from_json(saved.config, str(saved.path))
    where = f"{run} is damaged: checkpoint {saved.path.name}"
    check_settings(before, config, where, f"Restore {CONFIG}")
    if not _agree(saved, rows):
        raise UserError(
            f"{run / METRICS} is damaged: it differs from {saved.path}; mrn resume restores it"
        )


def _agree(saved: Saved, rows: Sequence[Metrics]) -> bool:
    """Return whether metrics start with those of a checkpoint; later epochs may follow."""
    return list(rows[: len(saved.rows)]) == saved.rows


def _read(checkpoint: Path, run: Path) -> Saved | None:
    """Return settings and metrics in a checkpoint, or None if it is damaged."""
    try:
        files = [checkpoint / "checkpoint.json", checkpoint / "complete"]
        if not all(is_inside(file, run) for file in files):
            return None
        text, mark = map(read_limited, files)
        if checksum(text).encode() != mark:
            return None
        about = parse_json(text, str(checkpoint))
        rows = [
            {name: None if value is None else float(value) for name, value in row.items()}
            for row in map(upgrade_row, about["metrics"])
        ]
        _ = [row["success"] for row in rows]
        return Saved(checkpoint, about["config"], rows)
    except (UserError, LookupError, TypeError, ValueError, AttributeError):
        return None
