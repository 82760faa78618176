"""TensorBoard event files: metrics and settings of a run."""

from pathlib import Path

from mrn.config import Config, flatten
from mrn.runs.metrics import COLUMNS, Row

TRAIN = "train/"
"""Prefix of the tags of an algorithm's metrics."""


def tag(column: str) -> str:
    """Return the TensorBoard tag of a column: `eval/...`, `train/...` or `time/...`."""
    if column not in COLUMNS or column == "updates":
        return f"{TRAIN}{column}"
    is_evaluation = column.startswith("success") or column == "steps_to_success"
    return f"{'eval' if is_evaluation else 'time'}/{column}"


def scalars(row: Row) -> dict[str, float]:
    """Return the values of an epoch or a cycle by tag, without counters of time."""
    names = (name for name in row if name not in ("epoch", "cycle", "env_steps"))
    return {tag(name): row[name] for name in names if row[name] is not None}


class Events:
    """Writer of TensorBoard event files."""

    def __init__(self, folder: Path, config: Config, first_step: int) -> None:
        """Open the event files, and discard events at or after `first_step`."""
        from torch.utils.tensorboard import SummaryWriter
        from torch.utils.tensorboard.summary import hparams

        self.writer = SummaryWriter(str(folder), purge_step=first_step, flush_secs=10)
        settings = {
            name: value if isinstance(value, bool | int | float | str) else str(value)
            for name, value in flatten(config.to_dict()).items()
        }
        # SummaryWriter.add_hparams would create a subfolder.
        for summary in hparams(settings, {tag("success"): None}):
            self.writer._get_file_writer().add_summary(summary)

    def log_cycle(self, row: Row) -> None:
        """Write the metrics of a cycle."""
        for name, value in scalars(row).items():
            self.writer.add_scalar(name, value, row["env_steps"])

    def log_epoch(self, row: Row) -> None:
        """Write the evaluation and timing of an epoch; its cycles already have the losses."""
        for name, value in scalars(row).items():
            if not name.startswith(TRAIN):
                self.writer.add_scalar(name, value, row["env_steps"])
        self.writer.flush()

    def close(self) -> None:
        """Close the event files."""
        self.writer.close()
