"""Everything the report page shows, as JSON: the page draws it and computes no statistics."""

import base64
import math
import os
import shlex
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mrn.analysis.epochs import Methods, curves, mean_over_runs, strides
from mrn.analysis.names import display_names
from mrn.analysis.ranking import BEST, pairwise
from mrn.analysis.rows import Row, eval_episodes
from mrn.analysis.run import PRUNED, Array, Run
from mrn.analysis.runs import group, without_metrics
from mrn.analysis.statistics import mean_and_std, mean_band, rate_band
from mrn.analysis.summary import Aggregate, Summary, rows_of_choices, summarize
from mrn.analysis.tables import (
    about_better,
    cost_value,
    format_interval,
    format_range,
    interval_label,
    percent,
)
from mrn.analysis.trials import trials_table
from mrn.config import flatten
from mrn.distributed import launch_command
from mrn.runs.layout import run_file
from mrn.utils.errors import UserError
from mrn.utils.files import read_limited
from mrn.utils.intervals import Interval
from mrn.utils.plotting import method_colors, sort_methods

VIDEOS = {".mp4": "video/mp4", ".webm": "video/webm", ".gif": "image/gif"}
IMAGES = {"inspect.png": "image/png"}
"""Images that `mrn inspect` writes to a run's folder."""
COUNTERS = ("epoch", "env_steps", "updates")
"""Columns of the metrics that are not measurements."""
RATES = ("success", "success_any")
"""Columns that are success rates of the evaluation episodes."""
COSTS = ("half", "ninety")
"""Measures of the table: episodes to 50% and 90% success."""
DIGITS = 6
"""Significant digits of the curves; the CSV of a run has all of them."""
SHARED = "Methods on a task are compared over the epochs that all methods shown have finished."
STAR = (
    f"A star marks the best method: {BEST}. It requires at least two seeds per method, no run "
    "stopped early by stop_at, and evaluations after equal numbers of episodes."
)


def page_data(runs: list[Run], baseline: str = "") -> dict[str, Any]:
    """Return the content of the page about these runs; `baseline` as in `summarize`."""
    methods = sort_methods({run.method for run in runs if not run.problem})
    problems = [f"{run.path}: {run.problem}" for run in runs if run.problem not in ("", PRUNED)]
    experiments = []
    for name, tasks in group(runs).items():
        own = [run for run in runs if run.experiment == name]
        unfinished = without_metrics(runs, name)
        summary = summarize(tasks, unfinished, baseline)
        found = {row.method for row in summary.rows}
        problems += [f"{name}: {text}" if name else text for text in summary.warnings]
        by = {task: strides(present) for task, present in tasks.items()}
        choices = [rows_of_choices(*each, unfinished, baseline) for each in tasks.items()]
        experiments.append(
            {
                "name": name,
                "tasks": list(tasks),
                "methods": [method for method in methods if method in found],
                "curves": [
                    _curve(task, method, runs_of_method, by[task][method])
                    for task, present in tasks.items()
                    for method, runs_of_method in present.items()
                ],
                "curves_note": _curves_note(tasks.values()),
                "rows": [row for rows in choices for row in _rows(rows)],
                "notes": _table_notes(summary),
                "better": summary.better,
                "aggregates": _aggregates(summary),
                "trials": trials_table(own),
                "runs": [
                    _run(run, by.get(run.task, {}).get(run.method, 1), problems) for run in own
                ],
            }
        )
    return {
        "about": _about(runs),
        "problems": problems,
        "names": display_names(methods),
        "colors": method_colors(methods),
        "experiments": experiments,
    }


def _about(runs: list[Run]) -> str:
    count = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    finished = sum(run.finished for run in runs)
    text = f"{count}, {finished} finished; written {time.strftime('%Y-%m-%d %H:%M:%S')}"
    machines = {tuple(run.info.machine.items()) for run in runs if run.info and run.info.machine}
    if len(machines) == 1:
        text += "; trained on " + ", ".join(f"{name} {value}" for name, value in machines.pop())
    return text


def _curve(task: str, method: str, runs: list[Run], stride: int) -> dict[str, Any]:
    """Return the learning curves of a method: mean, interval and seeds per column and epoch."""
    names = dict.fromkeys(name for run in runs for name in run.columns if name not in COUNTERS)
    episodes = np.array([eval_episodes(run) for run in runs])
    columns = {}
    for name in names:
        table = curves(runs, name)
        mean, _ = mean_and_std(table)
        low, high = rate_band(table, episodes) if name in RATES else mean_band(table)
        seeds = (~np.isnan(table)).sum(axis=0)
        columns[name] = {
            "mean": _rounded(mean),
            "low": _rounded(low),
            "high": _rounded(high),
            "seeds": seeds.tolist(),
        }
    return {
        "task": task,
        "method": method,
        "x": {
            "epochs": [(k + 1) / stride for k in range(max(run.epochs for run in runs))],
            "steps": mean_over_runs([run.columns["env_steps"] for run in runs]).tolist(),
            "time": mean_over_runs([run.seconds for run in runs]).round(3).tolist(),
        },
        "columns": columns,
    }


def _curves_note(tasks: Iterable[Methods]) -> str:
    counts = {len(runs) for methods in tasks for runs in methods.values()} - {1}
    if not counts:
        return "No interval: single seed."
    return f"Mean over seeds; bands: {interval_label(counts)}. Dotted where seeds are missing."


def _rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the table cells of the methods on a task, and how they rank against each other."""
    found = []
    for row in rows:
        rivals = [other for other in rows if other.epochs == row.epochs]
        found.append(
            {
                "task": row.task,
                "method": row.method,
                "epochs": row.epochs,
                "available": row.available,
                "cells": {name: _cell(row, name) for name in ("success", "area", *COSTS, "better")},
                "versus": pairwise(row, rivals),
            }
        )
    return found


def _cell(row: Row, measure: str) -> list[str]:
    """Return the lines of a table cell: the value, its interval, and the epochs compared."""
    count = len(row.seeds)
    seeds = "1 seed" if count == 1 else f"{count} seeds"
    if measure in COSTS:
        index = COSTS.index(measure)
        unfinished = [] if row.complete else ["unfinished"]
        return [cost_value(row, index), f"{row.reached[index]} of {seeds}", *unfinished]
    after = [f"after epoch {row.epochs} of {row.planned}"] if row.epochs < row.planned else []
    value: Interval | None = row.improvement if measure == "better" else getattr(row, measure)
    if value is None:
        return ["", *after]
    if value.known:
        detail = f"{format_range(value)} ({seeds})"
    elif measure == "success" and row.wilson:
        detail = f"{format_range(row.wilson)} (Wilson, {seeds})"
    else:
        detail = seeds
    return [percent(value.value), detail, *after]


def _table_notes(summary: Summary) -> dict[str, str]:
    """Return the note below the table for each measure."""
    rows = summary.rows
    counts = {len(row.seeds) for row in rows} - {1}
    means = []
    if counts:
        means = [f"Mean over seeds with {interval_label(counts)}."]
    single = []
    if any(row.wilson for row in rows):
        label = interval_label([1])
        single = [f"{label}: it covers the evaluation episodes, not the variation between seeds."]
    costs = "Median over seeds of the training episodes until an evaluation reaches the threshold."
    return {
        "success": " ".join([*means, *single, SHARED, STAR]),
        "area": " ".join([*means, SHARED, STAR]),
        "half": f"{costs} Methods are not ranked by it.",
        "ninety": f"{costs} Methods are not ranked by it.",
        "better": f"{about_better(summary)} Empty for single seeds. {SHARED}",
    }


def _aggregates(summary: Summary) -> dict[str, Any] | None:
    """Return the plots across tasks, or None if there is nothing to aggregate."""
    if len(summary.aggregates) < 2 or len(summary.tasks) < 2:
        return None
    average = "IQM" if summary.trimmed else "mean"
    titles = {"success": f"final success ({average})", "area": f"mean over epochs ({average})"}
    counts = {len(row.seeds) for row in summary.rows if row.task in summary.tasks}
    known = any(each.success.known for each in summary.aggregates)
    bars = f"bars: {interval_label(counts)}." if known else "no interval."
    note = f"{summary.average.capitalize()} over {len(summary.tasks)} tasks that all methods "
    note += f"finished, which count equally; {bars}"
    if any(each.improvement for each in summary.aggregates):
        titles["improvement"] = f"{summary.better} in mean over epochs"
        note += f" {about_better(summary)}"
    plots = [
        {"name": name, "title": title, "points": _points(summary.aggregates, name)}
        for name, title in titles.items()
    ]
    return {"note": note, "plots": plots}


def _points(aggregates: Iterable[Aggregate], name: str) -> list[dict[str, Any]]:
    return [
        {"method": each.method, "interval": _plain(value), "text": format_interval(value)}
        for each in aggregates
        if (value := getattr(each, name)) is not None
    ]


def _run(run: Run, stride: int, problems: list[str]) -> dict[str, Any]:
    """Return what the page lists about a run, and its metrics as written."""
    pictures = _pictures(run, problems)
    info: dict[str, Any] = {"command": "", "settings": {}, "versions": {}, "machine": {}}
    if run.info is not None:
        config = run.info.config
        command = f"{launch_command(run.info.processes)} train"
        info["command"] = f"{command} {shlex.join(config.arguments())}"
        info["settings"] = flatten(config.to_dict())
        info |= {"versions": run.info.versions, "machine": run.info.machine}
    return info | {
        "name": run.name,
        "task": run.task,
        "method": run.method,
        "planned": run.planned,
        "stride": stride,
        "problem": run.problem,
        "header": list(run.columns),  # of the CSV, with current names
        "csv": "" if run.problem else read_limited(run.metrics_file).decode(errors="replace"),
        "seconds": [] if run.problem else _plain(run.seconds.round(3).tolist()),
        "pictures": [{"name": name, "source": url} for name, url in pictures.items()],
    }


def _pictures(run: Run, problems: list[str]) -> dict[str, str]:
    """Return the videos and images in a run's folder as data URLs by name; skip unreadable ones."""
    found: dict[str, str] = {}
    # A run without readable settings may be a folder that was not searched, such as a link.
    for name in sorted(os.listdir(run.path)) if run.info and run.path.is_dir() else []:
        kind = VIDEOS.get(Path(name).suffix.lower()) or IMAGES.get(name)
        if kind:
            try:
                content = base64.b64encode(read_limited(run_file(run.path, name))).decode()
                found[name] = f"data:{kind};base64,{content}"
            except UserError as error:
                problems.append(f"not shown: {error}")
                warnings.warn(problems[-1], stacklevel=2)
    return found


def _rounded(values: Array) -> list[float | None]:
    return [float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None for value in values]


def _plain(value: Any) -> Any:
    """Replace NaN and infinity, which JSON lacks, with None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value
