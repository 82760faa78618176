"""Runs as one self-contained page: curves, tables, aggregates, settings, commands, videos."""

import base64
import json
import math
import shlex
import time
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

from mrn.config import flatten
from mrn.errors import UserError
from mrn.experiments.runs import Run, differing_settings, find_runs, group
from mrn.experiments.summary import Row, short_names, summarise
from mrn.extras import import_extra
from mrn.files import write_atomically
from mrn.plotting import colours, in_order

VIDEOS = {".mp4": "video/mp4", ".webm": "video/webm", ".gif": "image/gif"}


def write_report(root: Path, out: Path, refresh: int = 0) -> tuple[Path, bool]:
    """Write OUT/index.html about all runs below a folder.

    Args:
        root: A folder of runs.
        out: The folder of the page, made if it is not there.
        refresh: Seconds after which an open page loads itself again; 0 for never.

    Returns:
        The page, and whether all runs are finished.

    Raises:
        UserError: There are no runs, or none with a finished epoch.
    """
    runs = find_runs(root)
    if all(run.problem for run in runs):
        raise UserError(f"nothing to report in {root}: {runs[0].path}: {runs[0].problem}")
    finished = all(run.epochs >= run.planned and not run.problem for run in runs)
    page = _fill(_data(runs, 0 if finished else refresh))
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {out}: {error.strerror}") from None
    write_atomically(out / "index.html", page.encode())
    return out / "index.html", finished


def _fill(data: dict[str, Any]) -> str:
    plotly = import_extra("plotly.offline", "report")
    folder = resources.files("mrn.experiments") / "page"
    page = (folder / "report.html").read_text()
    text = json.dumps(data, allow_nan=False).replace("<", "\\u003c")  # ends no script
    parts = {
        "CSS": (folder / "report.css").read_text(),
        "PLOTLY": plotly.get_plotlyjs(),
        "JS": (folder / "report.js").read_text(),
        "DATA": text,
    }
    for name, part in parts.items():
        before, _, after = page.partition(f"/*{name}*/")
        page = before + part + after
    return page


def _data(runs: list[Run], refresh: int) -> dict[str, Any]:
    groups = group(runs)
    methods = in_order({run.method for run in runs if not run.problem})
    problems = [f"{run.path}: {run.problem}" for run in runs if run.problem]
    experiments = []
    for name, tasks in groups.items():
        summary = summarise(tasks)
        here = [run for run in runs if run.experiment == name]
        found = list(dict.fromkeys(row.method for row in summary.rows))
        for task, by_method in tasks.items():
            for method, seeds in by_method.items():
                if differing := differing_settings(seeds):
                    place = "/".join(filter(None, (name, task, method)))
                    problems.append(f"{place}: its runs differ in {', '.join(differing)}")
        experiments.append(
            {
                "name": name,
                "tasks": list(tasks),
                "methods": [method for method in methods if method in found],
                "reference": summary.reference,
                "shared": summary.tasks,
                "rows": [_row(row) for row in summary.rows],
                "aggregates": [_plain(vars(each)) for each in summary.aggregates],
                "runs": [_run(run) for run in here],
            }
        )
    done = sum(run.epochs >= run.planned and not run.problem for run in runs)
    about = f"{len(runs)} runs, {done} finished; written {time.strftime('%Y-%m-%d %H:%M:%S')}"
    return {
        "about": about,
        "problems": problems,
        "refresh": refresh,
        "names": short_names(methods),
        "colours": colours(methods),
        "experiments": experiments,
    }


def _row(row: Row) -> dict[str, Any]:
    costs = [[c, n] for c, n in zip(row.episodes_to, row.reached, strict=True)]
    figures = {
        "task": row.task,
        "method": row.method,
        "seeds": len(row.seeds),
        "epochs": row.epochs,
        "planned": row.planned,
        "complete": row.epochs >= row.planned,
        "success": row.success,
        "area": row.area,
        "half": costs[0],
        "ninety": costs[1],
    }
    return {name: _plain(value) for name, value in figures.items()}


def _run(run: Run) -> dict[str, Any]:
    columns = run.columns
    settings = {} if run.config is None else flatten(run.config.to_dict())
    command = "" if run.config is None else f"mrn train {shlex.join(run.config.arguments())}"
    return {
        "name": run.name,
        "task": run.task,
        "method": run.method,
        "planned": run.planned,
        "problem": run.problem,
        "success": _plain(run.success.tolist()),
        "steps": _plain(columns["env_steps"].tolist()) if columns else [],
        "seconds": _plain(run.seconds.tolist()) if columns else [],
        "command": command,
        "settings": settings,
        "versions": dict(run.versions),
        "videos": list(_videos(run.path)),
    }


def _videos(folder: Path) -> Iterable[dict[str, str]]:
    """Videos in a run's folder, as part of the page."""
    for file in sorted(folder.glob("*")) if folder.is_dir() else []:
        if file.suffix in VIDEOS:
            content = base64.b64encode(file.read_bytes()).decode()
            yield {"name": file.name, "source": f"data:{VIDEOS[file.suffix]};base64,{content}"}


def _plain(value: Any) -> Any:
    """JSON has neither NaN nor infinity: both become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value
