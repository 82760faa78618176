"""Tables of an experiment as Markdown and CSV, and the sentences below them."""

import csv
import io
from collections.abc import Iterable
from math import isfinite, isinf, isnan

from mrn.analysis.names import critic_name, display_names
from mrn.analysis.ranking import BEST
from mrn.analysis.rows import THRESHOLDS, Row
from mrn.analysis.summary import REFERENCE_CRITIC, Summary
from mrn.utils import tables
from mrn.utils.intervals import Interval


def markdown(summary: Summary) -> str:
    """Return the results as Markdown tables, with notes on intervals and comparability."""
    names = display_names(dict.fromkeys(row.method for row in summary.rows))
    header: tuple[str, ...] = ("task", "method", "seeds", "epochs", "success", "std")
    header += ("mean over epochs", "episodes to 50%", "to 90%")
    compared = any(row.improvement for row in summary.rows)
    header += (summary.better,) if compared else ()
    rows = []
    for row in summary.rows:
        mark = "**" if row.best else ""
        epochs = f"{row.epochs}" if row.epochs == row.planned else f"{row.epochs} of {row.planned}"
        costs = [format_cost(row, index) for index in range(len(THRESHOLDS))]
        values = (f"{mark}{format_success(row)}{mark}", percent(row.std), format_interval(row.area))
        seeds = str(len(row.seeds))
        better = [_format_optional(row.improvement)] if compared else []
        rows.append((row.task, names[row.method], seeds, epochs, *values, *costs, *better))
    notes = [*epoch_notes(summary), *(f"Warning: {text}." for text in summary.warnings)]
    notes += [f"Not counted: {text}." for text in summary.damaged]
    text = tables.markdown_table((header, rows)) + f"\n\n{_interval_notes(summary)}\n"
    text += "".join(f"\n{tables.one_line(note)}\n" for note in notes)
    if len(summary.tasks) < 2:
        return text
    header = ("method", "success", "mean over epochs", summary.better)
    across = []
    for each in summary.aggregates:
        means = (format_interval(each.success), format_interval(each.area))
        across.append((names[each.method], *means, _format_optional(each.improvement)))
    title = f"{summary.average.capitalize()} across {len(summary.tasks)} tasks, which count equally"
    known = any(each.success.known for each in summary.aggregates)
    title += " [95% interval over seeds]:" if known else ":"
    return f"{text}\n{title}\n\n{tables.markdown_table((header, across))}\n"


def interval_label(counts: Iterable[int]) -> str:
    """Return what an interval is, for example "95% Student-t interval, 3 seeds".

    Args:
        counts: Numbers of seeds; a single seed has the Wilson interval of its episodes.
    """
    distinct = sorted(set(counts))
    if distinct == [1]:
        return "95% Wilson interval, 1 seed"
    ends = f"{distinct[0]}" if len(distinct) == 1 else f"{distinct[0]} to {distinct[-1]}"
    return f"95% Student-t interval, {ends} seeds"


def _interval_notes(summary: Summary) -> str:
    """Return a sentence for each kind of interval in the table."""
    single = [row for row in summary.rows if len(row.seeds) == 1]
    counts = {len(row.seeds) for row in summary.rows} - {1}
    notes = []
    if counts:
        notes.append(f"Mean over seeds [{interval_label(counts)}].")
    if any(row.wilson for row in single):
        notes.append(
            f"In parentheses: {interval_label([1])}; it covers the evaluation episodes, not the "
            "variation between seeds."
        )
    elif single:
        notes.append("No interval: single seed.")
    if any(row.best for row in summary.rows):
        notes.append(f"Bold: {BEST}.")
    if any(row.improvement for row in summary.rows):
        notes.append(about_better(summary))
    return " ".join(notes)


def about_better(summary: Summary) -> str:
    """Return what the probability of improvement is."""
    names = display_names(dict.fromkeys(row.method for row in summary.rows))
    ours = f"with the {critic_name(REFERENCE_CRITIC)} critic, otherwise configured alike,"
    if summary.baseline:
        ours = f"of {names.get(summary.baseline, summary.baseline)}"
    return (
        f"{summary.better}: probability that a run {ours} has a higher mean over epochs than "
        "a run of the method. It counts all pairs of seeds; ties count half."
    )


def epoch_notes(summary: Summary) -> list[str]:
    """Return which epochs are compared, for each task whose runs differ in their epochs."""
    names = display_names(dict.fromkeys(row.method for row in summary.rows))
    notes = []
    for task in dict.fromkeys(row.task for row in summary.rows):
        rows = [row for row in summary.rows if row.task == task]
        longer = [f"{row.stride} epochs of {names[row.method]}" for row in rows if row.stride > 1]
        if longer:
            notes.append(
                f"{task}: one epoch in this table has as many episodes as {'; '.join(longer)}. "
                "Episodes to 50% and 90% use each method's own evaluations. Methods with shorter "
                "epochs are evaluated more often and may reach a threshold earlier."
            )
        if any(row.stopped for row in rows):
            notes.append(
                f"{task}: runs stopped early at `stop_at`, so no method is marked as best."
            )
        if all(row.epochs == row.available for row in rows):
            continue
        each = "; ".join(
            f"{names[row.method]}: {row.available}" + ("" if row.complete else f" of {row.planned}")
            for row in rows
        )
        count = rows[0].epochs
        first = "the first epoch" if count == 1 else f"the first {count} epochs"
        notes.append(f"{task}: compared over {first}, which all methods finished ({each}).")
    return notes


def format_success(row: Row) -> str:
    """Format the final success with its interval, or Wilson interval for one seed."""
    if row.wilson is None:
        return format_interval(row.success)
    return f"{percent(row.success.value)} ({format_range(row.wilson)})"


def format_interval(interval: Interval) -> str:
    """Format a fraction and its interval in percent."""
    value = percent(interval.value)
    if not interval.known:
        return value
    return f"{value} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def format_range(interval: Interval) -> str:
    """Format the ends of an interval in percent."""
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f}"


def _format_optional(interval: Interval | None) -> str:
    return "" if interval is None else format_interval(interval)


def percent(value: float) -> str:
    """Format a fraction in percent; NaN as a dash."""
    return "-" if isnan(value) else f"{100 * value:.1f}%"


def format_cost(row: Row, threshold: int) -> str:
    """Format the episodes (or epochs) to a threshold, and how many seeds reached it if not all.

    Args:
        row: The method on a task.
        threshold: Index in `THRESHOLDS`.
    """
    reached, seeds = row.reached[threshold], len(row.seeds)
    value = cost_value(row, threshold)
    if isinf(row.epochs_to[threshold]):
        return f"{value} (except {reached} of {seeds})" if reached else value
    return value if reached == seeds else f"{value} ({reached} of {seeds})"


def cost_value(row: Row, threshold: int) -> str:
    """Format the episodes (or epochs) to a threshold, or why there are none."""
    episodes, epochs = row.episodes_to[threshold], row.epochs_to[threshold]
    if isinf(epochs):
        return "unknown" if row.stopped else "never" if row.complete else "not yet"
    return f"{episodes:,.0f}" if isfinite(episodes) else f"epoch {epochs:g}"


def as_csv(summary: Summary) -> str:
    """Return all results unrounded, one line per task and method."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    ends = [f"{threshold:.0%}".rstrip("%") for threshold in THRESHOLDS]
    writer.writerow(
        ["task", "method", "seeds", "epochs", "planned", "stride"]
        + ["success", "success_low", "success_high"]
        + ["success_std", "one_seed_low", "one_seed_high", "area", "area_low", "area_high"]
        + ["improvement", "improvement_low", "improvement_high"]
        + [f"episodes_to_{end}" for end in ends]
        + [f"own_epochs_to_{end}" for end in ends]
    )
    for row in summary.rows:
        names = map(tables.csv_text, (row.task, row.method))
        place = [*names, len(row.seeds), row.epochs, row.planned, row.stride]
        unknown = (float("nan"),) * 3
        one_seed = (row.wilson or unknown)[1:]
        values = [*row.success, row.std, *one_seed, *row.area]
        better = row.improvement or unknown
        writer.writerow([*place, *values, *better, *row.episodes_to, *row.epochs_to])
    return table.getvalue()
