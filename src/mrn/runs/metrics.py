"""metrics.csv: a row per epoch, the columns of every run and after them the algorithm's own."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mrn.utils.errors import UserError
from mrn.utils.files import read_limited, write_atomically
from mrn.utils.renames import upgrade_columns

Row = dict[str, Any]

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
"""Of every run. `success` is at the last step; what was not measured is left empty."""


def check_columns(names: Any, where: str) -> None:
    """Refuse names for a algorithm's columns that could not be told apart in the file.

    Raises:
        UserError: They are no tuple of names, or one is there twice; `where` says whose they are.
    """
    every = [*COLUMNS, *names] if isinstance(names, tuple) else []
    texts = all(isinstance(name, str) and name for name in every)
    if not (every and texts and len(set(every)) == len(every)):
        raise UserError(
            f"{where} must be a tuple of names, each once and none of {', '.join(COLUMNS)}, got "
            f"{names!r}"
        )


def write_metrics(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Replace a metrics.csv."""
    table = io.StringIO()
    writer = csv.DictWriter(table, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, table.getvalue().encode())


def read_metrics(path: Path) -> list[dict[str, float | None]]:
    """The rows of a metrics.csv, one per epoch; None where nothing was measured.

    Raises:
        UserError: It is missing or damaged; says in which line.
    """
    text = read_limited(path).decode(errors="replace")
    remedy = "if it is that of a run, mrn resume writes it anew from the last checkpoint"
    try:
        lines = list(csv.reader(io.StringIO(text)))
    except csv.Error as error:
        raise UserError(f"{path} is damaged: {error}; {remedy}") from None
    names = upgrade_columns(lines[0]) if lines else []
    if not set(COLUMNS) <= set(names) or len(set(names)) < len(names):
        raise UserError(f"{path} is not the metrics of a run: its first line is not the columns")
    rows: list[dict[str, float | None]] = []
    for number, line in enumerate(lines[1:], start=1):
        try:
            values = [float(value) if value else None for value in line]
            rows.append(dict(zip(names, values, strict=True)))
        except ValueError:
            raise UserError(f"{path} is damaged in line {number + 1}; {remedy}") from None
        if rows[-1]["epoch"] != number or rows[-1]["env_steps"] is None:
            raise UserError(f"{path} is damaged: line {number + 1} is not epoch {number}; {remedy}")
    if not text.endswith("\n"):
        raise UserError(f"{path} is damaged: its last line is cut off; {remedy}")
    return rows


def is_finished(
    rows: Sequence[Mapping[str, float | None]], epochs: int | None, stop_at: float | None = None
) -> bool:
    """Whether a run of so many epochs has nothing left to do, or has reached where it may stop."""
    enough = any(reached_stop_at(row, stop_at) for row in rows)
    return bool(rows) and (enough or len(rows) >= (epochs or 1))


def reached_stop_at(row: Mapping[str, Any], stop_at: float | None) -> bool:
    """Whether an epoch's success rate is where the run may stop."""
    return stop_at is not None and (row["success"] or 0.0) >= stop_at


def _upgrade_row(row: Any) -> Any:
    if not isinstance(row, dict):
        return row
    return dict(zip(upgrade_columns(list(row)), row.values(), strict=True))


def check_rows(rows: Any, columns: set[str], where: str) -> list[Row]:
    """Rows of unknown origin, as a checkpoint keeps them.

    Raises:
        UserError: They are not those of a run; `where` names the file.
    """
    rows = [_upgrade_row(row) for row in rows] if isinstance(rows, list) else [None]
    for row in rows:
        if not isinstance(row, dict) or set(row) != columns:
            raise UserError(f"{where}: the metrics are not those of a run")
        if not all(value is None or type(value) in (int, float) for value in row.values()):
            raise UserError(f"{where}: the metrics are not numbers")
    return rows
