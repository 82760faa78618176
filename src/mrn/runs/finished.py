"""Confirm that a run is finished. metrics.csv alone is not enough: it has no checksum."""

from pathlib import Path

from mrn.config import Config
from mrn.runs.layout import METRICS, checkpoint_folders, weights_file
from mrn.runs.metrics import is_finished, read_metrics
from mrn.runs.policy_file import read_policy
from mrn.utils.errors import UserError
from mrn.utils.files import checksum, parse_json, read_limited


def confirm_finished(run: Path, config: Config) -> bool:
    """Return whether the checkpoint or the weights confirm that a run is finished.

    If the newest checkpoint disagrees, the run resumes from it, which restores the metrics.

    Raises:
        UserError: The run has no checkpoint, and its weights are of an earlier epoch.
    """
    for folder in reversed(checkpoint_folders(run)):
        if (curve := _saved_curve(folder)) is not None:
            rows = [{"success": success} for success in curve]
            return is_finished(rows, config.epochs, config.stop_at)
    about, _ = read_policy(weights_file(run))
    epoch, completed = about.get("epoch"), len(read_metrics(run / METRICS))
    if isinstance(epoch, int) and epoch < completed:  # unknown in files of earlier versions
        raise UserError(
            f"{run / METRICS} is damaged: it has {completed} epochs, but the weights are of epoch "
            f"{epoch}, and there is no checkpoint to resume from. Remove the folder to start over"
        )
    return True


def _saved_curve(checkpoint: Path) -> list[float | None] | None:
    """Return the success rates in a checkpoint, or None if it is damaged."""
    try:
        text = read_limited(checkpoint / "checkpoint.json")
        if checksum(text).encode() != read_limited(checkpoint / "complete"):
            return None
        rows = parse_json(text, str(checkpoint))["metrics"]
        return [None if row["success"] is None else float(row["success"]) for row in rows]
    except (UserError, LookupError, TypeError, ValueError):
        return None
