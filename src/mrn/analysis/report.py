"""Runs as one self-contained page: curves, tables, aggregates, settings, commands, pictures."""

import base64
import json
import math
import shlex
import time
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

from mrn.analysis.epochs import strides
from mrn.analysis.runs import Run, find_runs, group
from mrn.analysis.summary import Row, rows_of_choices, short_names, summarize
from mrn.analysis.tables import show_cost
from mrn.config import flatten
from mrn.distributed import launch_command
from mrn.utils.errors import UserError
from mrn.utils.extras import import_extra
from mrn.utils.files import make_writable_folder, read_limited, write_atomically
from mrn.utils.plotting import method_colors, sort_methods


class NoRunsError(UserError):
    """Runs of which nothing can be shown so far."""


VIDEOS = {".mp4": "video/mp4", ".webm": "video/webm", ".gif": "image/gif"}
PICTURES = {"inspect.png": "image/png"}
"""What `mrn inspect` draws into a run's folder."""
SCRIPTS = ("basics.js", "curves.js", "overview.js", "runs.js", "report.js")
"""In the order in which the page reads them."""


def write_report(root: Path, out: Path, refresh: int = 0, title: str = "") -> tuple[Path, bool]:
    """Write OUT/index.html about all runs below a folder.

    Args:
        root: A folder of runs.
        out: The folder of the page, made if it is not there.
        refresh: Seconds after which an open page loads itself again; 0 for never.
        title: Of the page; by default made from the name of the folder of runs.

    Returns:
        The page, and whether all runs are finished.

    Raises:
        NothingYetError: No run has finished an epoch, and one may still.
        UserError: There are no runs, or none from which metrics will come.
    """
    runs = find_runs(root)
    finished = all(run.is_final for run in runs)
    if all(run.problem for run in runs):
        kind = UserError if finished else NoRunsError
        raise kind(f"nothing to report in {root}: {runs[0].path}: {runs[0].problem}")
    data = {
        "title": title or f"mrn report: {root.resolve().name}",
        "refresh": 0 if finished else refresh,
    }
    page = _fill(data | _data(runs))
    make_writable_folder(out)
    write_atomically(out / "index.html", page.encode())
    return out / "index.html", finished


def _fill(data: dict[str, Any]) -> str:
    plotly = import_extra("plotly.offline", "report")
    folder = resources.files("mrn.analysis") / "page"
    page = (folder / "report.html").read_text()
    text = json.dumps(data, allow_nan=False).replace("<", "\\u003c")  # ends no script
    parts = {
        "CSS": (folder / "report.css").read_text(),
        "PLOTLY": plotly.get_plotlyjs(),
        "JS": "\n".join((folder / name).read_text() for name in SCRIPTS),
        "DATA": text,
    }
    for name, part in parts.items():
        before, _, after = page.partition(f"/*{name}*/")
        page = before + part + after
    return page


def _data(runs: list[Run]) -> dict[str, Any]:
    methods = sort_methods({run.method for run in runs if not run.problem})
    problems = [f"{run.path}: {run.problem}" for run in runs if run.problem]
    experiments = []
    for name, tasks in group(runs).items():
        others = [run for run in runs if run.experiment == name and run.problem]
        summary = summarize(tasks, others)
        found = {row.method for row in summary.rows}
        problems += [f"{name}: {told}" if name else told for told in summary.warnings]
        rows = [row for place in tasks.items() for row in rows_of_choices(*place, others)]
        by = {task: strides(methods) for task, methods in tasks.items()}
        experiments.append(
            {
                "name": name,
                "tasks": list(tasks),
                "methods": [method for method in methods if method in found],
                "shared": summary.tasks,
                "rows": [_row(row) for row in rows],
                "aggregates": [_plain(vars(each)) for each in summary.aggregates],
                "runs": [
                    _run(run) | {"stride": by.get(run.task, {}).get(run.method, 1)}
                    for run in runs
                    if run.experiment == name
                ],
            }
        )
    return {
        "about": _about(runs),
        "problems": problems,
        "names": short_names(methods),
        "colours": method_colors(methods),
        "experiments": experiments,
    }


def _about(runs: list[Run]) -> str:
    count = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    done = sum(run.finished for run in runs)
    text = f"{count}, {done} finished; written {time.strftime('%Y-%m-%d %H:%M:%S')}"
    machines = {tuple(run.info.machine.items()) for run in runs if run.info and run.info.machine}
    if len(machines) == 1:
        text += "; trained on " + ", ".join(f"{name} {value}" for name, value in machines.pop())
    return text


def _row(row: Row) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "task": row.task,
        "method": row.method,
        "seeds": len(row.seeds),
        "epochs": row.epochs,
        "own": row.own,
        "planned": row.planned,
        "stride": row.stride,
        "length": row.length,
        "stopped": row.stopped,
        "complete": row.complete,
        "success": row.success,
        "counted": row.counted,
        "area": row.area,
        "better": row.improvement,
    }
    for index, name in enumerate(("half", "ninety")):
        figures[name] = {
            "text": show_cost(row, index),
            "reached": row.reached[index],
            "episodes": row.episodes_to[index],
            "epochs": row.epochs_to[index],
        }
    return {name: _plain(value) for name, value in figures.items()}


def _run(run: Run) -> dict[str, Any]:
    about: dict[str, Any] = {"command": "", "settings": {}, "versions": {}, "machine": {}}
    if run.info is not None:
        config = run.info.config
        command = f"{launch_command(run.info.processes)} train"
        about["command"] = f"{command} {shlex.join(config.arguments())}"
        about["settings"] = flatten(config.to_dict())
        about |= {"versions": run.info.versions, "machine": run.info.machine}
    return about | {
        "name": run.name,
        "task": run.task,
        "method": run.method,
        "planned": run.planned,
        "problem": run.problem,
        # As it was written: the page draws from it, and hands it out.
        "csv": "" if run.problem else read_limited(run.metrics_file).decode(errors="replace"),
        "seconds": [] if run.problem else _plain(run.seconds.round(3).tolist()),
        "pictures": list(_pictures(run.path)),
    }


def _pictures(folder: Path) -> Iterable[dict[str, str]]:
    """Videos in a run's folder, and the picture of a look inside it, as part of the page."""
    for file in sorted(folder.glob("*")) if folder.is_dir() else []:
        kind = VIDEOS.get(file.suffix) or PICTURES.get(file.name)
        if kind:
            content = base64.b64encode(file.read_bytes()).decode()
            yield {"name": file.name, "source": f"data:{kind};base64,{content}"}


def _plain(value: Any) -> Any:
    """JSON has neither NaN nor infinity: both become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value
