"""metrics.csv: one row per epoch, with common columns followed by the algorithm's metrics."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mrn.utils.errors import UserError
from mrn.utils.files import read_limited, write_atomically
from mrn.utils.renames import upgrade_columns
from mrn.utils.tables import csv_text

Row = dict[str, Any]
Metrics = dict[str, float | None]
"""An epoch that was read from metrics.csv."""

COLUMNS = (
    "epoch",
    "env_steps",
    "updates",
    "success",
    "success_any",
    "steps_to_success",
    "steps_per_second",
    "rollout_seconds",
    "update_seconds",
    "evaluation_seconds",
)
"""Columns of every run. `success` is measured at the last step; missing values are empty."""
MAX_VALUE = 1e15
"""Upper limit of steps and seconds, which sums do not overflow."""
COUNTERS = ("env_steps", "updates")
"""Columns that never decrease and are never empty."""
_RATES = ("success", "success_any")


def check_columns(names: Any, where: str) -> None:
    """Check that an algorithm's metrics can be columns of metrics.csv.

    Raises:
        UserError: They are not a tuple of unique names; `where` identifies them.
    """
    columns = [*COLUMNS, *names] if isinstance(names, tuple) else []
    are_names = all(isinstance(name, str) and _is_name(name) for name in columns)
    if not (columns and are_names and len(set(columns)) == len(columns)):
        raise UserError(
            f"{where} must be a tuple of unique names other than {', '.join(COLUMNS)}, got "
            f"{names!r}"
        )


def _is_name(name: str) -> bool:
    """Return whether a column name is valid: not empty, and not a formula for spreadsheets."""
    return bool(name) and csv_text(name) == name


def write_metrics(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Replace a metrics.csv."""
    table = io.StringIO()
    writer = csv.DictWriter(table, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, table.getvalue().encode())


def read_metrics(path: Path) -> list[Metrics]:
    """Return the rows of a metrics.csv, one per epoch, with None for missing values.

    Raises:
        UserError: The file is missing or damaged; the message names the line.
    """
    text = read_limited(path).decode(errors="replace")
    remedy = "mrn resume restores the metrics of a run from its last checkpoint"
    try:
        lines = list(csv.reader(io.StringIO(text)))
    except csv.Error as error:
        raise UserError(f"{path} is damaged: {error}; {remedy}") from None
    names = upgrade_columns(lines[0]) if lines else []
    if (
        not set(COLUMNS) <= set(names)
        or len(set(names)) < len(names)
        or not all(map(_is_name, names))
    ):
        raise UserError(
            f"{path} is not the metrics of a run: columns are missing, duplicated or invalid"
        )
    rows: list[Metrics] = []
    for number, line in enumerate(lines[1:], start=1):
        try:
            values = [float(value) if value else None for value in line]
            rows.append(dict(zip(names, values, strict=True)))
        except ValueError:
            raise UserError(f"{path} is damaged in line {number + 1}; {remedy}") from None
        if problem := _problem(rows):
            raise UserError(f"{path} is damaged in line {number + 1}: {problem}; {remedy}")
    if not text.endswith("\n"):
        raise UserError(f"{path} is damaged: its last line is truncated; {remedy}")
    return rows


def _problem(rows: Sequence[Mapping[str, float | None]]) -> str:
    """Return what is wrong with the common columns of the last row, or an empty string."""
    row, number = rows[-1], len(rows)
    if row["epoch"] != number:
        return f"epoch must be {number}, got {row['epoch']}"
    for name in COUNTERS:
        value, before = row[name], (rows[-2][name] or 0) if number > 1 else 0
        if value is None or value < before:
            return f"{name} must be at least {before:g}, got {value}"
    for name in COLUMNS:
        value, largest = row[name], 1 if name in _RATES else MAX_VALUE
        if value is not None and not 0 <= value <= largest:  # NaN fails too
            return f"{name} must be between 0 and {largest:g}, got {value}"
    return ""


def is_finished(
    rows: Sequence[Mapping[str, float | None]], epochs: int | None, stop_at: float | None = None
) -> bool:
    """Return whether a run has no epoch left to train.

    Args:
        rows: Metrics of the completed epochs; only `success` is read.
        epochs: Epochs to train; None if unknown, which a single epoch satisfies.
        stop_at: Success rate at which the run stops early.
    """
    stopped = any(reached_stop_at(row, stop_at) for row in rows)
    return bool(rows) and (stopped or len(rows) >= (epochs or 1))


def reached_stop_at(row: Mapping[str, Any], stop_at: float | None) -> bool:
    """Return whether an epoch's success rate stops the run early."""
    return stop_at is not None and (row["success"] or 0.0) >= stop_at


def upgrade_row(row: Any) -> Any:
    """Translate the column names of an earlier version in a row of a checkpoint."""
    if not isinstance(row, dict):
        return row
    return dict(zip(upgrade_columns(list(row)), row.values(), strict=True))


def check_rows(rows: Any, columns: set[str], where: str) -> list[Row]:
    """Validate untrusted metrics of a checkpoint.

    Raises:
        UserError: They are not the metrics of a run; `where` names the file.
    """
    rows = [upgrade_row(row) for row in rows] if isinstance(rows, list) else [None]
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or set(row) != columns:
            raise UserError(f"{where}: the metrics do not have the columns of this run")
        if not all(value is None or type(value) in (int, float) for value in row.values()):
            raise UserError(f"{where}: the metrics are not numbers")
        if problem := _problem(rows[:number]):
            raise UserError(f"{where}: {problem}")
    return rows
