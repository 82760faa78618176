"""The figures of an experiment in words: tables, and what is to be said under them."""

import csv
import io
from math import isfinite, isinf, isnan

from mrn.analysis.summary import REFERENCE_CRITIC, THRESHOLDS, Row, Summary, short_names
from mrn.utils import tables
from mrn.utils.intervals import Interval

FEW = 3
"""Seeds up to which all draws are the lowest in more than 2.5 % of the samples: 1 in 4, 1 in 27."""
OF_FEW = "of 2 or 3 seeds: lowest to highest"


def markdown(summary: Summary) -> str:
    """The figures as Markdown tables, with what their intervals are and what to beware of."""
    names = short_names([row.method for row in summary.rows])
    heads: tuple[str, ...] = ("task", "method", "seeds", "epochs", "success", "std")
    heads += ("mean over epochs", "episodes to 50 %", "to 90 %")
    compared = any(row.improvement for row in summary.rows)
    heads += (f"P(critic {REFERENCE_CRITIC} is better)",) if compared else ()
    rows = []
    for row in summary.rows:
        mark = "**" if row.best else ""
        epochs = f"{row.epochs}" if row.epochs == row.planned else f"{row.epochs} of {row.planned}"
        costs = [show_cost(row, index) for index in range(len(THRESHOLDS))]
        figures = (f"{mark}{show_success(row)}{mark}", percent(row.std), show(row.area))
        seeds = str(len(row.seeds))
        better = [_show_known(row.improvement)] if compared else []
        rows.append((row.task, names[row.method], seeds, epochs, *figures, *costs, *better))
    notes = [*about_epochs(summary), *(f"Beware: {text}." for text in summary.warnings)]
    text = tables.markdown_table((heads, rows)) + f"\n\n{_about_intervals(summary)}\n"
    text += "".join(f"\n{note}\n" for note in notes)
    if len(summary.tasks) < 2:
        return text
    heads = ("method", "success", "mean over epochs", f"P(critic {REFERENCE_CRITIC} is better)")
    across = []
    for each in summary.aggregates:
        figures = (show(each.success), show(each.area), _show_known(each.improvement))
        across.append((names[each.method], *figures))
    title = f"Across {len(summary.tasks)} tasks, interquartile mean"
    title += " [95 % interval, stratified bootstrap over seeds]:"
    return f"{text}\n{title}\n\n{tables.markdown_table((heads, across))}\n"


def _about_intervals(summary: Summary) -> str:
    """A sentence for each kind of interval in the table."""
    alone = [row for row in summary.rows if len(row.seeds) == 1]
    said = []
    if len(alone) < len(summary.rows):
        few = f"; {OF_FEW}" if any(1 < len(row.seeds) <= FEW for row in summary.rows) else ""
        said.append(f"Mean over seeds [95 % interval of the mean, bootstrap over seeds{few}].")
    if any(row.counted for row in alone):
        said.append(
            "Of one seed (95 % Wilson interval of that policy's success rate, from its evaluation "
            "episodes): how much other seeds would differ is not known."
        )
    elif alone:
        said.append("Of one seed there is no interval: how much others would differ is not known.")
    if any(row.best for row in summary.rows):
        said.append("The best is bold.")
    if any(row.improvement for row in summary.rows):
        said.append(
            f"P: how likely a run with the critic {REFERENCE_CRITIC}, all else alike, has a higher mean over "
            "the epochs than one of the line's, counted over all pairs of seeds, those that are "
            "level as half; where all are on one side the interval has no width, which is no "
            "certainty."
        )
    return " ".join(said)


def about_epochs(summary: Summary) -> list[str]:
    """For each task on which runs differ in number or length of epochs: which ones count."""
    names = short_names([row.method for row in summary.rows])
    notes = []
    for task in dict.fromkeys(row.task for row in summary.rows):
        rows = [row for row in summary.rows if row.task == task]
        longer = [f"{row.stride} of {names[row.method]}" for row in rows if row.stride > 1]
        if longer:
            notes.append(
                f"{task}: an epoch here is as many episodes as {', '.join(longer)}. Episodes to 50 "
                "and 90 % are those of own evaluations: after shorter epochs these come more "
                "often, and may see it sooner."
            )
        if any(row.stopped for row in rows):
            notes.append(
                f"{task}: runs ended early, as good as they were to be (`stop_at`); what they "
                "would have done after that is not known, and no method is called the best."
            )
        if all(row.epochs == row.own for row in rows):
            continue
        each = ", ".join(
            f"{names[row.method]} {row.own}" + ("" if row.complete else f" of {row.planned}")
            for row in rows
        )
        count = rows[0].epochs
        first = "the first epoch" if count == 1 else f"the first {count} epochs"
        notes.append(f"{task}: compared over {first}, which all methods have ({each}).")
    return notes


def show_success(row: Row) -> str:
    """Success after the last epoch: with the interval over seeds, or of one seed's episodes."""
    if row.counted is None:
        return show(row.success)
    low, high = 100 * row.counted.low, 100 * row.counted.high
    return f"{percent(row.success.value)} ({low:.1f} to {high:.1f})"


def show(interval: Interval) -> str:
    """A share with its interval, in per cent."""
    value = percent(interval.value)
    if isnan(interval.low):
        return value
    return f"{value} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def _show_known(interval: Interval | None) -> str:
    return "" if interval is None else show(interval)


def percent(value: float) -> str:
    """A share in per cent; a dash for what is not known."""
    return "-" if isnan(value) else f"{100 * value:.1f} %"


def show_cost(row: Row, threshold: int) -> str:
    """Episodes (or epochs) to a threshold, by its index, and how many seeds if not all."""
    reached, seeds = row.reached[threshold], len(row.seeds)
    episodes, epochs = row.episodes_to[threshold], row.epochs_to[threshold]
    if isinf(epochs):
        text = "not known" if row.stopped else "never" if row.complete else "not yet"
        return f"{text} (but {reached} of {seeds})" if reached else text
    text = f"{episodes:,.0f}" if isfinite(episodes) else f"epoch {epochs:g}"
    return text if reached == seeds else f"{text} ({reached} of {seeds})"


def as_csv(summary: Summary) -> str:
    """One line per task and method; every figure of the table, unrounded."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    ends = [f"{threshold:.0%}".rstrip("%") for threshold in THRESHOLDS]
    writer.writerow(
        [
            "task",
            "method",
            "seeds",
            "epochs",
            "planned",
            "stride",
            "success",
            "success_low",
            "success_high",
        ]
        + ["success_std", "one_seed_low", "one_seed_high", "area", "area_low", "area_high"]
        + ["improvement", "improvement_low", "improvement_high"]
        + [f"episodes_to_{end}" for end in ends]
        + [f"own_epochs_to_{end}" for end in ends]
    )
    for row in summary.rows:
        place = [row.task, row.method, len(row.seeds), row.epochs, row.planned, row.stride]
        unknown = (float("nan"),) * 3
        counted = (row.counted or unknown)[1:]
        figures = [*row.success, row.std, *counted, *row.area]
        better = row.improvement or unknown
        writer.writerow([*place, *figures, *better, *row.episodes_to, *row.epochs_to])
    return table.getvalue()
