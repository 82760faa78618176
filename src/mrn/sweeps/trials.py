"""Files about the trials of a search: trials.csv, table.md and a suite to check the best one."""

import csv
import io
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrn.sweeps.search import Search, State, Trial
from mrn.sweeps.suites import SEEDS
from mrn.utils.errors import UserError
from mrn.utils.files import read_limited, write_atomically
from mrn.utils.tables import Table, markdown_table

TRIALS, TABLE, BEST = "trials.csv", "table.md", "best.toml"
COLUMNS = ("trial", "state", "success", "evaluations", "method", "problem")
"""Columns of trials.csv before those of the searched settings."""
ORDER: tuple[State, ...] = ("complete", "pruned", "running", "failed")
"""States in the order in which trials are listed."""
CHECK_SEEDS = 3
"""Number of new seeds on which the suite compares the best settings with the defaults."""


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Return complete trials, best first, then pruned, running and failed ones."""
    return sorted(trials, key=lambda t: (ORDER.index(t.state), -(t.success or 0.0), t.number))


def best_trial(trials: Sequence[Trial]) -> Trial | None:
    """Return the complete trial with the highest success, or None."""
    first = next(iter(ranked(trials)), None)
    return first if first and first.state == "complete" else None


def write_files(folder: Path, search: Search, trials: Sequence[Trial]) -> None:
    """Write all files about the trials so far."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, *search.space.searched])
    for trial in ranked(trials):
        method = search.config(trial, search.seeds[0]).method
        success = "" if trial.success is None else trial.success
        row = [trial.number, trial.state, success, len(trial.curve), method, trial.problem]
        writer.writerow([*row, *map(_text, trial.settings.values())])
    write_atomically(folder / TRIALS, text.getvalue().encode())
    write_atomically(folder / TABLE, f"{markdown_table(table(search, trials))}\n".encode())
    best = best_trial(trials)
    if best:
        write_atomically(folder / BEST, _suite(folder.name, search, best).encode())


def table(search: Search, trials: Sequence[Trial], limit: int | None = None) -> Table:
    """Return the trials as a table, best first."""
    rows = [
        (
            str(trial.number),
            trial.state,
            "" if trial.success is None else f"{trial.success:.1%}",
            *map(_text, trial.settings.values()),
        )
        for trial in ranked(trials)[:limit]
    ]
    return ("trial", "state", "mean success", *search.space.searched), rows


def read_trials(file: Path) -> list[dict[str, str]]:
    """Return the rows of a trials.csv, best first; none if another program wrote the file.

    Raises:
        UserError: The file is not readable or damaged.
    """
    try:
        reader = csv.DictReader(io.StringIO(read_limited(file).decode(errors="replace")))
        if not set(COLUMNS) <= set(reader.fieldnames or ()):
            return []
        rows = list(reader)
    except csv.Error as error:
        raise UserError(f"{file} is damaged: {error}; mrn tune writes it again") from None
    for row in rows:
        if not _is_trial(row):
            raise UserError(f"{file} is damaged: {row}; mrn tune writes it again")
    return rows


def _is_trial(row: dict[str, str]) -> bool:
    """Return whether a row has all columns and valid values."""
    try:
        whole = None not in row and None not in row.values()
        in_range = not row["success"] or 0 <= float(row["success"]) <= 1
        return whole and in_range and row["state"] in ORDER and int(row["trial"]) >= 0
    except ValueError:
        return False


def command(search: Search, trial: Trial) -> str:
    """Return the command that trains with the settings of a trial."""
    return f"mrn train {shlex.join(search.tuned(trial).arguments())}"


def _suite(name: str, search: Search, best: Trial) -> str:
    """Return a suite that compares the best settings with the defaults on new seeds."""
    seeds = [seed for seed in SEEDS if seed not in search.seeds][:CHECK_SEEDS]
    critics = list(dict.fromkeys([search.defaults.critic, search.tuned(best).critic]))
    settings = {k: v for k, v in best.settings.items() if k != "critic"}
    top: dict[str, Any] = {
        "tasks": [search.task],
        "algos": [search.algo],
        "recipes": [search.recipe],
    }
    top |= {"seeds": seeds, "folder": f"{name}/best"}
    top |= {"critics": critics} if critics != ["none"] else {}
    fixed = {"epochs": search.epochs} | search.space.fixed
    parts = [
        "# Compare the best settings with the defaults on seeds that were not used to choose them.",
        *_lines(top),
        "\n[settings]",
        *_lines(fixed),
        '\n[[variant]]\nname = ""',
        '\n[[variant]]\nname = "best"',
        *_lines(settings),
    ]
    return "\n".join(parts) + "\n"


def _lines(settings: dict[str, Any]) -> list[str]:
    """Return settings as lines of TOML."""
    return [f"{name} = {_toml(value)}" for name, value in settings.items()]


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{json.dumps(name)} = {_toml(part)}" for name, part in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)  # numbers, strings and booleans are written alike


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
