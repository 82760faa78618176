"""The paper's figures, drawn from runs: learning curves per task, and the aggregates."""

import os
import textwrap
import warnings
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mrn.analysis.epochs import Methods, curves, episodes_per_epoch, strides
from mrn.analysis.runs import NO_EPOCH, Array, Run, find_runs, group
from mrn.analysis.statistics import mean_and_std, mean_band
from mrn.analysis.summary import REFERENCE_CRITIC, Summary, shared_epochs, short_names, summarize
from mrn.analysis.tables import OF_FEW, as_csv, markdown
from mrn.runs.provenance import read_run_info_file
from mrn.runs.run_dir import check_settings
from mrn.sweeps.suites import ABLATIONS, SUITES
from mrn.utils.errors import UserError
from mrn.utils.files import make_writable_folder, write_atomically
from mrn.utils.intervals import Interval
from mrn.utils.naming import Method, safe_name
from mrn.utils.plotting import import_pyplot, method_colors, save_figure, sort_methods

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Tasks = dict[str, Methods]
COLUMNS = 4
BELOW_THE_LABEL = 32
"""Points from a panel's lower edge: ticks, their numbers, and what the axis says."""
PICTURES = ("curves", "aggregate", "ablation")
SHARED = "shared"
"""Name of the line at the last epoch that all methods have."""


def draw_figures(root: Path, out: Path) -> list[Path]:
    """Write the figures and tables of all runs below a folder.

    For each experiment (a suite's folder): `curves`, `aggregate` where all methods have finished
    several tasks, and `ablation` where there are ablations of MRN, as PDF and PNG; `table.md` and
    `table.csv`; and the metrics of each run as TASK/AGENT-CRITIC/seed-SEED.csv, from which all of
    it can be drawn again, with its settings in seed-SEED.json beside it where they are known.

    Returns:
        What was written, the settings aside.

    Warns:
        UserWarning: Runs that are compared were not trained alike, which the table says too; runs
            could not be drawn; or pictures of earlier calls lie there.

    Raises:
        UserError: There are no runs, or none with a finished epoch.
    """
    runs = find_runs(root, out)
    groups = group(runs)
    if not groups:
        raise UserError(f"nothing to draw in {root}: {runs[0].path}: {runs[0].problem}")
    for run in runs:
        _refuse_others(run, _copy_of(run, out / run.experiment))
    written = []
    for experiment, tasks in groups.items():
        folder = out / experiment
        make_writable_folder(folder)
        others = [run for run in runs if run.experiment == experiment and run.problem]
        summary = summarize(tasks, others)
        _warn_of_missing(others)
        for told in summary.warnings:
            warnings.warn(f"{experiment or root}: {told}", stacklevel=2)
        planned = _planned(experiment or root.resolve().name, tasks)
        pictures = {"curves": draw_curves(tasks, *planned)}
        if len(summary.tasks) > 1:
            pictures["aggregate"] = draw_aggregate(summary)
        ablation = _ablations(tasks)
        if ablation and _methods(ablation) != _methods(tasks):
            pictures["ablation"] = draw_curves(
                ablation, list(ablation), sort_methods(_methods(ablation))
            )
        for name, picture in pictures.items():
            written += save_figure(picture, folder / name)
        _warn_of_others(folder, pictures)
        write_atomically(folder / "table.md", markdown(summary).encode())
        write_atomically(folder / "table.csv", as_csv(summary).encode())
        written += [folder / "table.md", folder / "table.csv"]
        seeds = (runs for methods in tasks.values() for runs in methods.values())
        written += [_copy_metrics(run, folder) for runs in seeds for run in runs]
    return written


def _warn_of_missing(runs: list[Run]) -> None:
    """Name the runs that cannot be drawn; count those that are only beginning."""
    beginning = sum(run.problem == NO_EPOCH for run in runs)
    said = [f"{beginning} in which {NO_EPOCH}"] if beginning else []
    said += [f"{run.path}: {run.problem}" for run in runs if run.problem != NO_EPOCH]
    if said:
        warnings.warn(f"runs that are not drawn: {'; '.join(said)}", stacklevel=3)


def _warn_of_others(folder: Path, drawn: Container[str]) -> None:
    """A picture that was drawn of other runs does not fit the table beside it any more."""
    others = [name for name in PICTURES if name not in drawn]
    found = [str(path) for name in others for path in sorted(folder.glob(f"{name}.p*"))]
    if found:
        warnings.warn(f"pictures that are not of these runs: {', '.join(found)}", stacklevel=3)


def draw_curves(tasks: Tasks, names: list[str], methods: list[str]) -> "Figure":
    """Success over epochs, a panel per task: mean over seeds and its 95 % bootstrap interval.

    Args:
        tasks: The runs there are.
        names: Tasks to draw, in this order; one without runs gets a panel that says so.
        methods: Methods to draw; where one has no run, the panel says so.
    """
    columns = min(COLUMNS, len(names))
    rows = -(-len(names) // columns)
    width = max(3.0 * columns, 6.0)
    figure = import_pyplot().figure(layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    shown, palette = short_names(methods), method_colors(methods)
    for panel in panels.flat[len(names) :]:
        panel.set_axis_off()
    for panel, task in zip(panels.flat, names, strict=False):
        present = tasks.get(task, {})
        by = strides(present) if present else {}
        for method in methods:
            if method in present:
                _draw_method(panel, curves(present[method]), by[method], palette[method])
        if present:
            _mark_shared(panel, by, present)
        _label(panel, task, present, [shown[m] for m in methods if m not in present])
        if max(by.values(), default=1) > 1:
            method, runs = next(iter(present.items()))
            length = by[method] * episodes_per_epoch(runs[0])
            panel.set_xlabel(f"epochs of {length:,} episodes", fontsize=8)
    for row in panels:
        row[0].set_ylabel("success")
    handles = [import_pyplot().Line2D([], [], color=palette[m], label=shown[m]) for m in methods]
    said = []
    if any(len(runs) > 1 for present in tasks.values() for runs in present.values()):
        said.append(f"bands: 95 % bootstrap interval of the mean over seeds ({OF_FEW})")
    if any(line.get_gid() == SHARED for panel in panels.flat for line in panel.lines):
        said.append("dashed: the last epoch that all methods have, where they are compared")
    # In inches: a panel is 2.5 high, a line below it 0.13, a name of the legend 0.2, and 0.08 wide
    # for each letter.
    told = [[text.get_text().count("\n") + 1 for p in row for text in p.texts] for row in panels]
    longest = max((len(shown[method]) for method in methods), default=0)
    across = min(max(int(width / (0.6 + 0.08 * longest)), 1), max(len(methods), 1))
    below = 0.2 * -(-len(methods) // across) + 0.15 * len(said)
    below += 0.13 * sum(max(lines, default=0) for lines in told)
    figure.set_size_inches(width, 2.5 * rows + 0.15 + below)
    figure.legend(
        handles=handles,
        frameon=False,
        title="\n".join(said) or None,
        title_fontsize=7,
        loc="outside lower center",
        ncols=across,
    )
    return figure


def draw_aggregate(summary: Summary) -> "Figure":
    """Interquartile means across tasks with 95 % intervals, and the probability of improvement."""
    methods = [aggregate.method for aggregate in summary.aggregates]
    shown, palette = short_names(methods), method_colors(sort_methods(set(methods)))
    parts: list[tuple[str, list[Interval | None]]] = [
        ("final success (IQM)", [a.success for a in summary.aggregates]),
        ("mean over epochs (IQM)", [a.area for a in summary.aggregates]),
    ]
    # Of one seed each nobody knows which is better.
    if any(a.improvement for a in summary.aggregates):
        better = [a.improvement for a in summary.aggregates]
        parts.append((f"P(critic {REFERENCE_CRITIC} is better in\nmean over epochs)", better))
    size = (3.0 * len(parts), 0.35 * len(methods) + 1.3)
    figure = import_pyplot().figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(parts), sharey=True)
    for panel, (title, values) in zip(panels, parts, strict=True):
        for height, (method, value) in enumerate(zip(methods, values, strict=True)):
            if value is None:
                continue
            panel.plot(value.value, height, "o", color=palette[method], markersize=5)
            if not np.isnan(value.low):
                panel.hlines(height, value.low, value.high, color=palette[method], linewidth=2)
        panel.set_title(title, fontsize=9)
        panel.set_xlim(-0.03, 1.03)
        panel.set_yticks(range(len(methods)), [shown[method] for method in methods])
        panel.invert_yaxis() if panel is panels[0] else None
        panel.grid(axis="x", alpha=0.3)
    if len(parts) > 2:
        panels[-1].axvline(0.5, color="gray", linewidth=0.8, linestyle="--")
    known = any(not np.isnan(a.success.low) for a in summary.aggregates)
    bars = "bars are 95 % stratified bootstrap intervals" if known else "one seed: no intervals"
    figure.supxlabel(f"{len(summary.tasks)} tasks; {bars}", fontsize=8)
    return figure


def _draw_method(panel: "Axes", table: Array, stride: int, colour: str) -> None:
    """Mean and its interval; dotted where not all seeds are there yet: (seeds, own epochs)."""
    mean, _ = mean_and_std(table)
    epochs = np.arange(1, len(mean) + 1) / stride
    whole = int((~np.isnan(table)).all(axis=0).sum())
    marker = "o" if len(mean) < 3 else None  # a line of one point cannot be seen
    style: dict[str, Any] = {"color": colour, "linewidth": 1.4, "marker": marker, "markersize": 3}
    panel.plot(epochs[:whole], mean[:whole], **style)
    rest = slice(max(whole - 1, 0), None)
    if whole < len(mean):
        panel.plot(epochs[rest], mean[rest], linestyle=":", **style)
    panel.fill_between(epochs, *mean_band(table), color=colour, alpha=0.2, linewidth=0)


def _mark_shared(panel: "Axes", by: dict[str, int], present: Methods) -> None:
    """A line at the last epoch that is compared, where some have more."""
    shared = shared_epochs(present)
    if any(run.epochs > shared * by[m] for m, runs in present.items() for run in runs):
        style: dict[str, Any] = {"color": "gray", "linewidth": 0.8, "linestyle": "--"}
        panel.axvline(shared, gid=SHARED, zorder=0, **style)


def _label(panel: "Axes", task: str, present: Methods, missing: list[str]) -> None:
    counts = sorted({len(runs) for runs in present.values()})
    seeds = "" if not counts else f"{counts[0]}-{counts[-1]}" if len(counts) > 1 else str(counts[0])
    word = "seed" if seeds == "1" else "seeds"
    panel.set_title(f"{task} ({seeds} {word})" if seeds else task, fontsize=9)
    panel.set_ylim(-0.03, 1.03)
    panel.set_xlabel("epoch", fontsize=8)
    panel.locator_params(axis="x", integer=True)
    panel.grid(alpha=0.3)
    style: dict[str, Any] = {"xycoords": "axes fraction", "ha": "center", "style": "italic"}
    if not present:
        panel.set(xticks=[], yticks=[])
        panel.annotate("no runs", (0.5, 0.5), color="gray", fontsize=8, **style)
    elif missing:
        told = textwrap.fill(f"missing: {', '.join(missing)}", 44)
        style |= {"xytext": (0, -BELOW_THE_LABEL), "textcoords": "offset points", "va": "top"}
        panel.annotate(told, (0.5, 0), color="gray", fontsize=7, **style)


def _planned(experiment: str, tasks: Tasks) -> tuple[list[str], list[str]]:
    """Tasks and methods to draw: all of the suite that wrote here, if it is one of ours, too."""
    found = _methods(tasks)
    for name, suite in SUITES.items():
        ours = {str(Method(agent, critic)) for agent, critic in suite.pairs}
        if Path(experiment).name == (suite.folder or name) and ours & found:
            others = [task for task in tasks if task not in suite.tasks]
            more = found - _methods(_ablations(tasks))  # which have a figure of their own
            return [*suite.tasks, *others], sort_methods(ours | more)
    return list(tasks), sort_methods(found)


def _methods(tasks: Tasks) -> set[str]:
    return {method for methods in tasks.values() for method in methods}


def _ablations(tasks: Tasks) -> Tasks:
    """MRN and its ablations alone, where at least one of these is there."""
    wanted = {str(Method("ddpg", critic)) for critic in ABLATIONS}
    chosen = {t: {m: r for m, r in methods.items() if m in wanted} for t, methods in tasks.items()}
    chosen = {task: methods for task, methods in chosen.items() if methods}
    return chosen if _methods(chosen) - {str(Method("ddpg", REFERENCE_CRITIC))} else {}


def _copy_of(run: Run, folder: Path) -> Path:
    return folder / safe_name(run.task) / run.method / f"seed-{run.seed}.csv"


def _refuse_others(run: Run, target: Path) -> None:
    """Refuse to write over the metrics of a run of other settings, of which no more may be left."""
    kept, source = target.with_suffix(".json"), run.settings_file
    if run.problem or not kept.exists() or (source.exists() and os.path.samefile(source, kept)):
        return
    remedy = "Choose another --out, or move that away"
    if run.config is None:
        raise UserError(f"{run.path} has no settings, and {kept} is of other metrics. {remedy}")
    try:
        before = read_run_info_file(kept, imports=False).config
    except UserError as error:
        raise UserError(f"{error}. {remedy}") from None
    check_settings(before, run.config, str(kept), remedy)


def _copy_metrics(run: Run, folder: Path) -> Path:
    target = _copy_of(run, folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    pairs = ((run.metrics_file, target), (run.settings_file, target.with_suffix(".json")))
    for source, copy in pairs:
        if source.exists() and not (copy.exists() and os.path.samefile(source, copy)):
            write_atomically(copy, source.read_bytes())
    return target
