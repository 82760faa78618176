"""TensorBoard event files: metrics and settings of a run."""

import io
import os
import secrets
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from mrn.config import Config, flatten
from mrn.runs.metrics import COLUMNS, Row
from mrn.utils.errors import RunError
from mrn.utils.files import open_own

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
    """Writer of an event file.

    TensorBoard's own writer opens the file again for each event. It would write to another run
    that replaced this one, and to the target of a link.
    """

    def __init__(self, folder: Path, config: Config, first_step: int) -> None:
        """Create an event file, and discard events at or after `first_step`."""
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from torch.utils.tensorboard.summary import hparams

        self.event = Event
        # Readers sort by name, and a run may resume within a second.
        name = f"{time.time():017.6f}.{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}"
        self.path = folder / f"events.out.tfevents.{name}"
        folder.mkdir(exist_ok=True)
        self.file = open_own(self.path, "xb")
        settings = {
            name: value if isinstance(value, bool | int | float | str) else str(value)
            for name, value in flatten(config.to_dict()).items()
        }
        self._write(
            Event(file_version="brain.Event:2"),
            Event(step=first_step, session_log=SessionLog(status=SessionLog.START)),
            *(Event(summary=each) for each in hparams(settings, {tag("success"): None})),
        )

    def log_cycle(self, row: Row) -> None:
        """Write the metrics of a cycle."""
        self._log(scalars(row), row["env_steps"])

    def log_epoch(self, row: Row) -> None:
        """Write the evaluation and timing of an epoch; its cycles already have the losses."""
        rest = {name: each for name, each in scalars(row).items() if not name.startswith(TRAIN)}
        self._log(rest, row["env_steps"])

    def _log(self, values: Mapping[str, float], step: int) -> None:
        from torch.utils.tensorboard.summary import scalar

        summaries = (scalar(name, value) for name, value in values.items())
        self._write(*(self.event(step=step, summary=each) for each in summaries))

    def _write(self, *events: Any) -> None:
        """Append events at once, because readers stop at an incomplete one.

        Raises:
            RunError: The disk is full.
        """
        from tensorboard.summary.writer.record_writer import RecordWriter

        content = io.BytesIO()
        for event in events:
            event.wall_time = time.time()
            RecordWriter(content).write(event.SerializeToString())
        try:
            self.file.write(content.getvalue())
            self.file.flush()
        except OSError as error:
            raise RunError(
                f"cannot write {self.path}: {error.strerror}; checkpoints are untouched"
            ) from error

    def close(self) -> None:
        """Close the event file."""
        with suppress(OSError):  # on a full disk, which `_write` reported
            self.file.close()
