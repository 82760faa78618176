"""Matplotlib figures of an experiment: learning curves per task, and aggregates."""

import textwrap
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mrn.analysis.epochs import Methods, curves, mean_over_runs, strides
from mrn.analysis.names import display_names
from mrn.analysis.rows import eval_episodes
from mrn.analysis.run import Array, Run
from mrn.analysis.statistics import mean_and_std, rate_band
from mrn.analysis.summary import Summary, shared_epochs
from mrn.analysis.tables import interval_label
from mrn.utils.errors import UserError
from mrn.utils.extras import import_extra
from mrn.utils.intervals import Interval
from mrn.utils.plotting import import_pyplot, method_colors, plain_text, sort_methods

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Tasks = dict[str, Methods]
XAxis = Literal["steps", "episodes"]
COLUMNS = 4
BELOW_AXIS_LABEL = 32
"""Points from a panel's lower edge that the ticks and the axis label take up."""
SHARED = "shared"
"""Matplotlib gid of the line at the last epoch that all methods have."""
X_LABELS = {"steps": "environment steps", "episodes": "episodes"}


def draw_curves(
    tasks: Tasks, names: list[str], methods: list[str], x_axis: XAxis = "steps"
) -> "Figure":
    """Draw success over training, one panel per task: mean over seeds with interval.

    Args:
        tasks: The runs.
        names: Tasks to draw, in this order. A task without runs gets an empty panel.
        methods: Methods to draw. A panel lists those without runs.
        x_axis: Unit of the x axis.

    Raises:
        UserError: The x axis is in episodes, and their number is unknown for some run.
    """
    columns = min(COLUMNS, len(names))
    rows = -(-len(names) // columns)
    width = max(3.0 * columns, 6.0)
    figure = import_pyplot().figure(layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    shown, palette = _shown_names(methods), method_colors(methods)
    for panel in panels.flat[len(names) :]:
        panel.set_axis_off()
    for panel, task in zip(panels.flat, names, strict=False):
        present = tasks.get(task, {})
        for method in methods:
            if method in present:
                x = mean_over_runs([_x_values(run, x_axis) for run in present[method]])
                _draw_method(panel, x, present[method], palette[method])
        if present:
            _mark_shared(panel, present, x_axis)
        _label(panel, task, present, [shown[m] for m in methods if m not in present])
        panel.set_xlabel(X_LABELS[x_axis], fontsize=8)
    for row in panels:
        row[0].set_ylabel("success rate")
    handles = [import_pyplot().Line2D([], [], color=palette[m], label=shown[m]) for m in methods]
    marked = any(line.get_gid() == SHARED for panel in panels.flat for line in panel.lines)
    notes = _notes(tasks, marked)
    # In inches: a panel is 2.5 high, a line of text below it 0.13, and a legend entry 0.2 high
    # and 0.08 wide per character.
    texts = [[text.get_text().count("\n") + 1 for p in row for text in p.texts] for row in panels]
    longest = max((len(shown[method]) for method in methods), default=0)
    across = min(max(int(width / (0.6 + 0.08 * longest)), 1), max(len(methods), 1))
    below = 0.2 * -(-len(methods) // across) + 0.15 * len(notes)
    below += 0.13 * sum(max(lines, default=0) for lines in texts)
    figure.set_size_inches(width, 2.5 * rows + 0.15 + below)
    figure.legend(
        handles=handles,
        frameon=False,
        title="\n".join(notes) or None,
        title_fontsize=7,
        loc="outside lower center",
        ncols=across,
    )
    return figure


def draw_aggregate(summary: Summary) -> "Figure":
    """Draw averages across tasks with intervals, and the probability of improvement."""
    methods = [aggregate.method for aggregate in summary.aggregates]
    shown, palette = _shown_names(methods), method_colors(sort_methods(set(methods)))
    average = "IQM" if summary.trimmed else "mean"
    parts: list[tuple[str, list[Interval | None]]] = [
        (f"final success ({average})", [a.success for a in summary.aggregates]),
        (f"mean over epochs ({average})", [a.area for a in summary.aggregates]),
    ]
    if any(a.improvement for a in summary.aggregates):
        better = [a.improvement for a in summary.aggregates]
        parts.append((f"{plain_text(summary.better)}\nin mean over epochs", better))
    size = (3.0 * len(parts), 0.35 * len(methods) + 1.3)
    figure = import_pyplot().figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(parts), sharey=True)
    for panel, (title, values) in zip(panels, parts, strict=True):
        for height, (method, value) in enumerate(zip(methods, values, strict=True)):
            if value is None:
                continue
            panel.plot(value.value, height, "o", color=palette[method], markersize=5)
            if value.known:
                panel.hlines(height, value.low, value.high, color=palette[method], linewidth=2)
        panel.set_title(title, fontsize=9)
        panel.set_xlim(-0.03, 1.03)
        panel.set_yticks(range(len(methods)), [shown[method] for method in methods])
        panel.grid(axis="x", alpha=0.3)
    panels[0].invert_yaxis()  # shared by all panels
    if len(parts) > 2:
        panels[-1].axvline(0.5, color="gray", linewidth=0.8, linestyle="--")
    counts = {len(row.seeds) for row in summary.rows if row.task in summary.tasks}
    known = any(a.success.known for a in summary.aggregates)
    bars = f"bars: {interval_label(counts)}" if known else "no interval"
    figure.supxlabel(f"{len(summary.tasks)} tasks; {bars}", fontsize=8)
    return figure


def _shown_names(methods: list[str]) -> dict[str, str]:
    return {method: plain_text(name) for method, name in display_names(methods).items()}


def _x_values(run: Run, x_axis: XAxis) -> Array:
    values = run.columns["env_steps"] if x_axis == "steps" else run.episodes
    if np.isnan(values).any():
        raise UserError(
            f"{run.path}: the number of episodes per epoch is unknown, because the run has no "
            "settings; choose environment steps for the x axis"
        )
    return values


def _draw_method(panel: "Axes", x: Array, runs: list[Run], color: str) -> None:
    """Draw the mean and its interval; dotted where seeds are missing."""
    table = curves(runs)  # (seeds, epochs)
    mean, _ = mean_and_std(table)
    complete = ~np.isnan(table).any(axis=0)
    marker = "o" if len(mean) < 3 else None  # a line of one point is invisible
    style: dict[str, Any] = {"color": color, "linewidth": 1.4, "marker": marker, "markersize": 3}
    panel.plot(x, np.where(complete, mean, np.nan), **style)
    if not complete.all():
        panel.plot(x, mean, linestyle=":", **style)
    ends = rate_band(table, np.array([eval_episodes(run) for run in runs]))
    panel.fill_between(x, *ends, color=color, alpha=0.2, linewidth=0)


def _mark_shared(panel: "Axes", present: Methods, x_axis: XAxis) -> None:
    """Draw a line at the last compared epoch if some runs are longer."""
    shared, by = shared_epochs(present), strides(present)
    runs = [run for runs in present.values() for run in runs]
    if any(run.epochs > shared * by[run.method] for run in runs):
        ends = [shared * by[run.method] for run in runs]
        at = [
            _x_values(r, x_axis)[end - 1]
            for r, end in zip(runs, ends, strict=True)
            if r.epochs >= end
        ]
        style: dict[str, Any] = {"color": "gray", "linewidth": 0.8, "linestyle": "--"}
        panel.axvline(max(at), gid=SHARED, zorder=0, **style)


def _label(panel: "Axes", task: str, present: Methods, missing: list[str]) -> None:
    """Set the title, axes and a list of missing methods."""
    counts = sorted({len(runs) for runs in present.values()})
    seeds = "" if not counts else f"{counts[0]}-{counts[-1]}" if len(counts) > 1 else str(counts[0])
    word = "seed" if seeds == "1" else "seeds"
    task = plain_text(task)
    panel.set_title(f"{task} ({seeds} {word})" if seeds else task, fontsize=9)
    panel.set_ylim(-0.03, 1.03)
    ticker = import_extra("matplotlib.ticker", "report")
    panel.xaxis.set_major_locator(ticker.MaxNLocator(5, integer=True))
    panel.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    panel.tick_params(labelsize=8)
    panel.grid(alpha=0.3)
    style: dict[str, Any] = {"xycoords": "axes fraction", "ha": "center", "style": "italic"}
    if not present:
        panel.set(xticks=[], yticks=[])
        panel.annotate("no runs", (0.5, 0.5), color="gray", fontsize=8, **style)
    elif missing:
        text = textwrap.fill(f"missing: {'; '.join(missing)}", 44)
        style |= {"xytext": (0, -BELOW_AXIS_LABEL), "textcoords": "offset points", "va": "top"}
        panel.annotate(text, (0.5, 0), color="gray", fontsize=7, **style)


def _notes(tasks: Tasks, marked: bool) -> list[str]:
    """Return the lines above the legend: what bands and dashed lines are."""
    notes = []
    counts = {len(runs) for present in tasks.values() for runs in present.values()}
    if counts - {1}:
        notes.append(f"Bands: {interval_label(counts - {1})}")
    if 1 in counts:
        notes.append("No band: single seed" if counts - {1} else "No interval: single seed")
    if marked:
        notes.append("Dashed: end of the last epoch that all methods have, where they are compared")
    return notes
