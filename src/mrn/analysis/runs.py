"""Read runs, finished or not, from their folders and group them for comparison."""

import os
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from mrn.analysis.run import NEVER_EVALUATED, NO_EPOCH, Run
from mrn.analysis.search import search
from mrn.analysis.trials import mark_abandoned
from mrn.config import Config, flatten
from mrn.envs import TASKS
from mrn.runs.layout import CONFIG, METRICS, run_file, weights_file
from mrn.runs.metrics import Metrics, is_finished, read_metrics
from mrn.runs.provenance import read_run_info, read_run_info_file
from mrn.runs.run_dir import MUTABLE_SETTINGS
from mrn.runs.verify import check_saved, confirm_finished, read_saved
from mrn.utils.errors import UserError
from mrn.utils.naming import safe_name
from mrn.utils.plotting import sort_methods


def find_runs(root: Path, figures: Path | None = None) -> list[Run]:
    """Find all runs below a folder: run folders and CSVs named TASK/ALGO-CRITIC/seed-SEED.csv.

    Settings of a CSV are read from seed-SEED.json next to it, if present. A CSV next to the folder
    of its own run is skipped; `mrn figures RUNS -o RUNS` puts it there. A damaged run is returned
    with its `problem` and without metrics. So is a folder that cannot be searched.

    Runs below EXPERIMENT/TASK/ALGO-CRITIC/seed-SEED belong to that experiment. Run folders with
    custom names (`--run-dir`) are compared with each other, wherever they are. If those of a method
    differ in settings, they are separate methods, named by these settings.

    Args:
        root: The folder.
        figures: Output folder of `mrn figures`, whose CSVs may be copies of these runs.

    Raises:
        UserError: The folder does not exist, holds no runs, or holds two runs of the same name.
    """
    if not root.is_dir():
        raise UserError(f"folder {root} does not exist")
    found = search(root)
    runs = [_read_folder(path, root) for path in found.folders]
    runs += [_read_csv(path, root) for path in found.csvs]
    runs += [_damaged_folder(path, root, why) for path, why in found.skipped.items()]
    if not runs:
        raise UserError(
            f"no runs in {root}: expected folders with a {CONFIG}, as written by `mrn train`, or "
            "files named TASK/ALGO-CRITIC/seed-SEED.csv"
        )
    if figures:
        runs = _without_copies(runs, root.resolve(), figures.resolve())
    runs = _separate_repetitions(_name_by_settings(mark_abandoned(runs)), root)
    _check_unique(runs)
    return runs


def _without_copies(runs: list[Run], root: Path, figures: Path) -> list[Run]:
    """Drop CSVs in a subfolder of the root if their runs also exist outside of it."""
    if root not in figures.parents:
        return runs
    prefix = figures.relative_to(root).as_posix()
    inside: list[Run] = []
    others: list[Run] = []
    for run in runs:
        is_copy = run.path.suffix == ".csv" and figures in run.path.resolve().parents
        (inside if is_copy else others).append(run)
    known = {(run.experiment, run.task, run.method, run.seed) for run in others}

    def original(run: Run) -> tuple[str, str, str, int]:
        place = run.experiment.removeprefix(prefix).lstrip("/")
        return place, run.task, run.method, run.seed

    return others + [run for run in inside if original(run) not in known]


def _name_by_settings(runs: list[Run]) -> list[Run]:
    """Add the settings to the method of runs with custom folders, where these settings differ."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.experiment, run.task, run.method), []).append(run)
    named = []
    for each in groups.values():
        settings = [flatten(run.config.to_dict()) if run.config else {} for run in each]
        varied = [
            name
            for name in settings[0]
            if name not in ("seed", *MUTABLE_SETTINGS)
            if any(other.get(name) != settings[0][name] for other in settings)
        ]
        if all(run.has_default_place for run in each):
            varied = []  # the settings of a suite's methods are meant to be equal
        for run, own in zip(each, settings, strict=True):
            labels = (safe_name(f"{name}={own.get(name)}") for name in varied)
            named.append(replace(run, method="+".join([run.method, *labels])))
    return named


def _separate_repetitions(runs: list[Run], root: Path) -> list[Run]:
    """Make a repeated run in a folder with a custom name an experiment of its own."""
    taken = {(r.experiment, r.task, r.method, r.seed) for r in runs if r.has_default_place}
    separated = []
    for run in runs:
        place = (run.experiment, run.task, run.method, run.seed)
        if not run.has_default_place:
            if place in taken:
                run = replace(run, experiment=run.path.relative_to(root).as_posix())
            taken.add(place)
        separated.append(run)
    return separated


def _check_unique(runs: list[Run]) -> None:
    """Raise if a seed occurs twice, because it would count twice."""
    first: dict[tuple[str, str, str, int], Run] = {}
    for run in runs:
        other = first.setdefault((run.experiment, run.task, run.method, run.seed), run)
        if other is not run and run.method:  # a run without readable settings has no method
            raise UserError(
                f"two runs of {run.name}: {other.path} and {run.path}; remove one of them, or move "
                "it to a separate folder"
            )


def _read_folder(path: Path, root: Path) -> Run:
    try:
        info = read_run_info(path)
    except UserError as error:
        return _damaged_folder(path, root, str(error))
    config = info.config
    *place, name = path.absolute().parts
    is_seed = name.removeprefix("seed-").isdecimal() and name.startswith("seed-")
    if is_seed and tuple(place[-2:]) == config.folder.parts[:2] and name != config.folder.name:
        problem = f"{path / CONFIG} holds the settings of another run, {config.folder}"
        return _damaged_folder(path, root, problem)
    run = Run(path, "", config.task, config.method, config.seed, {}, info)
    if run.has_default_place:
        run = replace(run, experiment=_experiment(path, root))
    if not os.path.lexists(path / METRICS):
        return replace(run, problem=NO_EPOCH)
    return _with_metrics(run)


def _experiment(path: Path, root: Path) -> str:
    """Return the folder above TASK/ALGO-CRITIC/seed-SEED, relative to the root."""
    place = Path(*path.relative_to(root).parts[:-3])
    return "" if place == Path() else place.as_posix()


def _damaged_folder(path: Path, root: Path, problem: str) -> Run:
    """Return a run without readable settings, whose folder may tell its task and method."""
    *_, task, method, name = ("", "", *path.absolute().parts)
    seed = name.removeprefix("seed-")
    if seed == name or not seed.isdecimal():
        return Run(path, "", name, "", 0, {}, problem=problem)
    return Run(path, _experiment(path, root), task, method, int(seed), {}, problem=problem)


def _read_csv(path: Path, root: Path) -> Run:
    task, method, _ = path.absolute().parts[-3:]
    seed = path.stem.removeprefix("seed-")
    experiment = _experiment(path, root)
    run = Run(path, experiment, task, method, int(seed) if seed.isdecimal() else 0, {})
    if not seed.isdecimal():
        problem = f"{seed!r} is not a seed: name the file seed-SEED.csv, for example seed-100.csv"
        return replace(run, method="", problem=problem)
    if run.settings_file.exists():
        try:
            info = read_run_info_file(run.settings_file)
        except UserError as error:
            return replace(run, problem=str(error))
        config = info.config
        if (safe_name(config.task), config.seed) != (task, run.seed) or not _fits(config, method):
            problem = f"{run.settings_file} holds the settings of another run, {config.folder}"
            return replace(run, problem=problem)
        run = replace(run, task=config.task, info=info)
    return _with_metrics(run)


def _fits(config: Config, method: str) -> bool:
    """Return whether settings are those of a method, perhaps with labels of some settings."""
    values = flatten(config.to_dict())
    rest = method.removeprefix(config.method)
    labels = rest.split("+")[1:]
    known = {safe_name(f"{name}={value}") for name, value in values.items()}
    return method == config.method or (rest.startswith("+") and set(labels) <= known)


def _with_metrics(run: Run) -> Run:
    confirmed = True
    try:
        if run.path.is_dir() and run.config is not None:
            rows, confirmed = _verified_metrics(run.path, run.config)
        else:
            rows = read_metrics(run.metrics_file)
    except UserError as error:
        return replace(run, problem=str(error))
    if not rows:
        return replace(run, problem=NO_EPOCH)
    columns = {
        name: np.array([np.nan if row[name] is None else row[name] for row in rows], np.float64)
        for name in rows[0]
    }
    if np.isnan(columns["success"]).all():
        return replace(run, problem=NEVER_EVALUATED)
    return replace(run, columns=columns, confirmed=confirmed)


def _verified_metrics(folder: Path, config: Config) -> tuple[list[Metrics], bool]:
    """Return the metrics in a run folder, and whether other files confirm that it is finished.

    A folder without checkpoints and weights is like a CSV: there is nothing to compare with.

    Raises:
        UserError: The metrics are damaged, or checkpoint or weights contradict them.
    """
    saved = read_saved(folder)  # before the metrics, which a process writes first
    rows = read_metrics(run_file(folder, METRICS))
    if saved:
        check_saved(saved, folder, config, rows)
    elif not os.path.lexists(weights_file(folder)):
        return rows, True
    return rows, is_finished(rows, config.epochs, config.stop_at) and confirm_finished(
        folder, config
    )


def warn_skipped(runs: Iterable[Run], what: str) -> None:
    """Warn about runs without metrics; those that only just started are counted, not named.

    Args:
        runs: All runs.
        what: How these runs are treated, for example `not drawn`.
    """
    skipped = [run for run in runs if run.problem]
    just_started = sum(run.problem == NO_EPOCH for run in skipped)
    texts = [f"{just_started} because {NO_EPOCH}"] if just_started else []
    texts += [f"{run.path}: {run.problem}" for run in skipped if run.problem != NO_EPOCH]
    if texts:
        warnings.warn(f"runs {what}: {'; '.join(texts)}", stacklevel=3)


def without_metrics(runs: Iterable[Run], experiment: str) -> list[Run]:
    """Return the runs of an experiment that have no metrics, and those of unknown experiments."""
    return [run for run in runs if run.problem and (run.experiment == experiment or not run.method)]


Groups = dict[str, dict[str, dict[str, list[Run]]]]
"""Runs by experiment, task and method."""


def group(runs: Iterable[Run]) -> Groups:
    """Group runs with metrics by experiment, task (in the paper's order) and method."""
    usable = [run for run in runs if not run.problem]
    place = {name: index for index, name in enumerate(TASKS)}
    rank = {name: index for index, name in enumerate(sort_methods({run.method for run in usable}))}

    def order(run: Run) -> tuple[str, int, str, int, int]:
        task = place.get(run.task, len(place))
        return run.experiment, task, run.task, rank[run.method], run.seed

    usable.sort(key=order)
    groups: Groups = {}
    for run in usable:
        tasks = groups.setdefault(run.experiment, {})
        tasks.setdefault(run.task, {}).setdefault(run.method, []).append(run)
    return groups
