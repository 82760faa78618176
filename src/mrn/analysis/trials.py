"""Trials of `mrn tune` in the report: their table, and runs that are not compared."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from mrn.analysis.run import PRUNED, Run
from mrn.sweeps.trials import COLUMNS, TRIALS, read_trials
from mrn.utils.errors import UserError


def mark_abandoned(runs: list[Run]) -> list[Run]:
    """Set the problem of runs whose trial was pruned or failed, or whose list of trials is damaged.

    They may have fewer epochs than others, which would shorten the comparison of all trials.
    """
    problems: dict[tuple[Path, str], str] = {}
    damaged: dict[Path, str] = {}
    for file in {_trials_file(run) for run in runs}:
        try:
            rows = read_trials(file) if file.is_file() else []
        except UserError as error:
            damaged[file] = str(error)
            continue
        for row in rows:
            if row["state"] == "pruned":
                problems[file, row["method"]] = PRUNED
            elif row["state"] == "failed":
                problems[file, row["method"]] = row["problem"] or "its trial failed"

    def problem(run: Run) -> str:
        file = _trials_file(run)
        return problems.get((file, run.method)) or run.problem or damaged.get(file, "")

    return [replace(run, problem=problem(run)) for run in runs]


def trials_table(runs: list[Run]) -> dict[str, Any] | None:
    """Return the trials of an experiment, best first; None if it is not a search, or damaged."""
    file = next((each for run in runs if (each := _trials_file(run)).is_file()), None)
    rows = []
    with suppress(UserError):  # its runs have this problem
        rows = read_trials(file) if file else []
    if not rows:
        return None
    settings = [name for name in rows[0] if name not in COLUMNS]
    return {
        "header": ["trial", "state", "mean success", "evaluations", *settings],
        "rows": [
            [
                row["trial"],
                row["state"],
                f"{float(row['success']):.1%}" if row["success"] else "",
                row["evaluations"],
                *(row[name] for name in settings),
            ]
            for row in rows
        ],
    }


def _trials_file(run: Run) -> Path:
    """Return where the trials are listed if the run belongs to a search."""
    return run.path.absolute().parent.parent.parent / TRIALS  # exists for short paths, too
