"""Write the figures, tables and learning curves of a folder of runs."""

import os
import warnings
from collections.abc import Container
from pathlib import Path

from mrn.analysis.plots import Tasks, XAxis, draw_aggregate, draw_curves
from mrn.analysis.run import Run
from mrn.analysis.runs import find_runs, group, warn_skipped, without_metrics
from mrn.analysis.summary import REFERENCE_CRITIC, check_baseline, summarize
from mrn.analysis.tables import as_csv, markdown
from mrn.runs.provenance import read_run_info_file
from mrn.runs.run_dir import check_settings
from mrn.sweeps.suites import ABLATIONS, SUITES
from mrn.utils.errors import UserError
from mrn.utils.files import is_inside, make_writable_folder, read_limited, write_atomically
from mrn.utils.naming import Method, safe_name
from mrn.utils.plotting import save_figure, sort_methods

FIGURES = ("curves", "aggregate", "ablation")
TABLE_START = b"task,method,seeds,"
"""How every table.csv starts."""


def draw_figures(
    root: Path, out: Path, x_axis: XAxis = "steps", baseline: str = "", force: bool = False
) -> list[Path]:
    """Write the figures and tables of all runs below a folder.

    Each experiment (see `find_runs`) gets these files:

    - `curves` as PDF and PNG; `aggregate` if all methods have finished several tasks; `ablation`
      if there are ablations of MRN.
    - `table.md` and `table.csv`.
    - The metrics of each run as TASK/ALGO-CRITIC/seed-SEED.csv, with its settings in
      seed-SEED.json if known. `draw_figures` can read these files again.

    Args:
        root: Folder of runs.
        out: Output folder.
        x_axis: Unit of the x axis of learning curves.
        baseline: Method that all others are compared with; by default MRN's of the same settings.
        force: Overwrite files in folders without a table of an earlier call.

    Returns:
        The files written, without the settings.

    Warns:
        UserWarning: Compared runs were not trained alike, runs could not be drawn, or the output
            folder holds figures of earlier calls.

    Raises:
        UserError: There are no runs, none has a finished epoch, or none is of the baseline; or a
            file would be overwritten that an earlier call did not write.
    """
    runs = find_runs(root, out)
    groups = group(runs)
    if not groups:
        raise UserError(f"nothing to draw in {root}: {runs[0].path}: {runs[0].problem}")
    check_baseline(runs, baseline)
    for run in runs:
        copy = _copy_path(run, out / run.experiment)
        _check_links(copy.parent, out)
        _check_settings(run, copy)
    if not force:
        for experiment, tasks in groups.items():
            _check_overwrite(out / experiment, tasks)
    warn_skipped(runs, "not drawn")
    written = []
    for experiment, tasks in groups.items():
        folder = out / experiment
        make_writable_folder(folder)
        summary = summarize(tasks, without_metrics(runs, experiment), baseline)
        for text in summary.warnings:
            warnings.warn(f"{experiment or root}: {text}", stacklevel=2)
        selection = _tasks_and_methods(experiment or root.resolve().name, tasks)
        figures = {"curves": draw_curves(tasks, *selection, x_axis)}
        if len(summary.tasks) > 1:
            figures["aggregate"] = draw_aggregate(summary)
        ablation = _ablations(tasks)
        if ablation and _methods(ablation) != _methods(tasks):
            methods = sort_methods(_methods(ablation))
            figures["ablation"] = draw_curves(ablation, list(ablation), methods, x_axis)
        for name, figure in figures.items():
            written += save_figure(figure, folder / name)
        _warn_stale(folder, figures)
        write_atomically(folder / "table.md", markdown(summary).encode(errors="backslashreplace"))
        write_atomically(folder / "table.csv", as_csv(summary).encode(errors="backslashreplace"))
        written += [folder / "table.md", folder / "table.csv"]
        seeds = (runs for methods in tasks.values() for runs in methods.values())
        written += [_copy_metrics(run, folder) for runs in seeds for run in runs]
    return written


def _warn_stale(folder: Path, drawn: Container[str]) -> None:
    """Warn about figures of earlier calls, which do not match the new table."""
    others = [name for name in FIGURES if name not in drawn]
    found = [str(path) for name in others for path in sorted(folder.glob(f"{name}.p*"))]
    if found:
        warnings.warn(f"figures of other runs: {', '.join(found)}", stacklevel=3)


def _tasks_and_methods(experiment: str, tasks: Tasks) -> tuple[list[str], list[str]]:
    """Return the tasks and methods to draw, including missing ones of a built-in suite."""
    found = _methods(tasks)
    for name, suite in SUITES.items():
        listed = {str(Method(algo, critic)) for algo, critic in suite.pairs}
        if Path(experiment).name == (suite.folder or name) and listed & found:
            others = [task for task in tasks if task not in suite.tasks]
            more = found - _methods(_ablations(tasks))  # ablations have a separate figure
            return [*suite.tasks, *others], sort_methods(listed | more)
    return list(tasks), sort_methods(found)


def _methods(tasks: Tasks) -> set[str]:
    return {method for methods in tasks.values() for method in methods}


def _ablations(tasks: Tasks) -> Tasks:
    """Return the runs of MRN and its ablations; empty if there are no ablations."""
    wanted = {str(Method("ddpg", critic)) for critic in ABLATIONS}
    chosen = {t: {m: r for m, r in methods.items() if m in wanted} for t, methods in tasks.items()}
    chosen = {task: methods for task, methods in chosen.items() if methods}
    return chosen if _methods(chosen) - {str(Method("ddpg", REFERENCE_CRITIC))} else {}


def _copy_path(run: Run, folder: Path) -> Path:
    return folder / safe_name(run.task) / run.method / f"seed-{run.seed}.csv"


def _check_links(folder: Path, out: Path) -> None:
    """Raise if a link leads out of the output folder, which may be the folder of runs."""
    for path in (folder, *folder.parents):
        if path == out:
            return
        if not is_inside(path, out):
            raise UserError(f"{path} is outside of {out}, because of a link; pass another --out")


def _check_overwrite(folder: Path, tasks: Tasks) -> None:
    """Raise if a file exists in a folder without a table of an earlier call."""
    table = folder / "table.csv"
    if table.is_file() and read_limited(table).startswith(TABLE_START):
        return
    names = [f"{name}{suffix}" for name in FIGURES for suffix in (".pdf", ".png")]
    files = [folder / name for name in (*names, "table.md", "table.csv")]
    for run in (run for methods in tasks.values() for runs in methods.values() for run in runs):
        copy = _copy_path(run, folder)
        files += [copy] if not _is_same(run.metrics_file, copy) else []
    for file in files:
        if file.exists():
            raise UserError(f"{file} is not from mrn figures; use force to overwrite it")


def _is_same(file: Path, other: Path) -> bool:
    return file.exists() and other.exists() and os.path.samefile(file, other)


def _check_settings(run: Run, target: Path) -> None:
    """Raise if a copy would overwrite the metrics of a run with other settings."""
    kept, source = target.with_suffix(".json"), run.settings_file
    if run.problem or not kept.exists() or _is_same(source, kept):
        return
    remedy = "Choose another output folder, or move that file away"
    if run.config is None:
        raise UserError(
            f"{run.path} has no settings, but {kept} belongs to other metrics. {remedy}"
        )
    try:
        before = read_run_info_file(kept).config
    except UserError as error:
        raise UserError(f"{error}. {remedy}") from None
    check_settings(before, run.config, str(kept), remedy)


def _copy_metrics(run: Run, folder: Path) -> Path:
    target = _copy_path(run, folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    pairs = ((run.metrics_file, target), (run.settings_file, target.with_suffix(".json")))
    for source, copy in pairs:
        if source.exists() and not _is_same(source, copy):
            write_atomically(copy, read_limited(source))
    return target
