"""A run's metrics and settings for TensorBoard."""

from pathlib import Path

from mrn.config import Config, flatten
from mrn.runs.metrics import COLUMNS, Row


def tag(column: str) -> str:
    """Where TensorBoard shows a column: among the evaluation's, the algorithm's or the speed's."""
    if column not in COLUMNS:
        return f"algorithm/{column}"
    evaluated = column.startswith("success") or column == "steps_to_success"
    return f"{'evaluation' if evaluated else 'speed'}/{column}"


def scalars(row: Row) -> dict[str, float]:
    """What is shown of an epoch, by where; its number of environment steps is the axis."""
    shown = (name for name in row if name not in ("epoch", "env_steps"))
    return {tag(name): row[name] for name in shown if row[name] is not None}


class Events:
    """Event files, in a folder of a run."""

    def __init__(self, folder: Path, config: Config, first_step: int) -> None:
        """Begin at a number of environment steps; events of steps computed again are replaced."""
        from torch.utils.tensorboard import SummaryWriter
        from torch.utils.tensorboard.summary import hparams

        self.writer = SummaryWriter(str(folder), purge_step=first_step)
        settings = {
            name: value if isinstance(value, bool | int | float | str) else str(value)
            for name, value in flatten(config.to_dict()).items()
        }
        # As SummaryWriter.add_hparams does, but here and not in a folder of their own.
        for summary in hparams(settings, {tag("success"): None}):
            self.writer._get_file_writer().add_summary(summary)

    def log(self, row: Row) -> None:
        """Add an epoch's metrics."""
        for name, value in scalars(row).items():
            self.writer.add_scalar(name, value, row["env_steps"])
        self.writer.flush()

    def close(self) -> None:
        """Close the file."""
        self.writer.close()
