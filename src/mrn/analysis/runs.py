"""Read runs, finished or not, from their folders and group them for comparison."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mrn.config import Config
from mrn.envs import TASKS
from mrn.runs.layout import CONFIG, METRICS
from mrn.runs.metrics import is_finished, reached_stop_at, read_metrics
from mrn.runs.provenance import RunInfo, read_run_info, read_run_info_file
from mrn.utils.errors import UserError
from mrn.utils.naming import safe_name
from mrn.utils.plotting import sort_methods

NO_EPOCH = "no epoch is finished yet"
NEVER_EVALUATED = "it was never evaluated (eval_episodes is 0)"

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """A run: what it is compared by, and its metrics, one value per finished epoch."""

    path: Path
    experiment: str
    """Folder of its suite, relative to the root; empty for runs directly below the root."""
    task: str
    method: str
    """ALGO-CRITIC, plus recipe and variant if any."""
    seed: int
    columns: dict[str, Array]
    """Columns of metrics.csv; NaN where nothing was measured."""
    info: RunInfo | None = None
    """Settings, versions and machine; None for a CSV without them."""
    problem: str = ""
    """Why the run has no metrics; empty if it has."""

    @property
    def config(self) -> Config | None:
        """Configuration of the run, or None if unknown."""
        return None if self.info is None else self.info.config

    @property
    def metrics_file(self) -> Path:
        """Path of the metrics."""
        return self.path / METRICS if self.path.is_dir() else self.path

    @property
    def settings_file(self) -> Path:
        """Path of the settings, which may not exist."""
        return self.path / CONFIG if self.path.is_dir() else self.path.with_suffix(".json")

    @property
    def name(self) -> str:
        """Readable name, EXPERIMENT/TASK/METHOD/SEED."""
        return "/".join(filter(None, (self.experiment, self.task, self.method, str(self.seed))))

    @property
    def epochs(self) -> int:
        """Number of finished epochs."""
        return len(self.success)

    @property
    def stopped(self) -> bool:
        """Whether it reached `stop_at` before its last epoch."""
        if self.config is None:
            return False
        early = self.config.epochs is None or self.epochs < self.config.epochs
        return early and any(reached_stop_at(row, self.config.stop_at) for row in self._rows)

    @property
    def planned(self) -> int:
        """Number of epochs to train, if known; the finished epochs if it stopped early."""
        if self.stopped:
            return self.epochs
        return (self.config and self.config.epochs) or self.epochs

    @property
    def finished(self) -> bool:
        """Whether it trained all its epochs or reached `stop_at`."""
        epochs, stop_at = (self.config.epochs, self.config.stop_at) if self.config else (None, None)
        return not self.problem and is_finished(self._rows, epochs, stop_at)

    @property
    def _rows(self) -> list[dict[str, float | None]]:
        return [{"success": None if np.isnan(value) else value} for value in self.success.tolist()]

    @property
    def is_final(self) -> bool:
        """Whether no more results will follow: it is finished, or never evaluated."""
        return self.finished or self.problem == NEVER_EVALUATED

    @property
    def success(self) -> Array:
        """Success rate at the last step of an episode, per epoch."""
        return self.columns.get("success", np.empty(0))

    @cached_property
    def seconds(self) -> Array:
        """Wall-clock seconds until the end of each epoch: rollouts, updates and evaluation."""
        names = ("rollout_seconds", "update_seconds", "evaluation_seconds")
        return np.cumsum(sum(np.nan_to_num(self.columns[name]) for name in names))

    @cached_property
    def episodes(self) -> Array:
        """Training episodes until the end of each epoch; NaN if unknown."""
        if self.config is not None:
            plan = self.config.schedule
            return self.columns["epoch"] * plan.cycles * plan.num_envs
        if self.task in TASKS:
            return self.columns["env_steps"] / TASKS[self.task].spec.horizon
        return np.full(self.epochs, np.nan)


def find_runs(root: Path, figures: Path | None = None) -> list[Run]:
    """Find all runs below a folder: run folders and CSVs named TASK/ALGO-CRITIC/seed-SEED.csv.

    Settings of a CSV are read from seed-SEED.json next to it, if present. A CSV next to the folder
    of its own run is skipped; `mrn figures RUNS -o RUNS` puts it there. A damaged run is returned
    with its `problem` and without metrics.

    Args:
        root: The folder.
        figures: Output folder of `mrn figures`, whose CSVs may be copies of these runs.

    Raises:
        UserError: The folder does not exist, holds no runs, or holds two runs of the same name.
    """
    if not root.is_dir():
        raise UserError(f"folder {root} does not exist")
    runs = []
    for folder, below, files in os.walk(root):
        path = Path(folder)
        below.sort()
        if CONFIG in files:
            below.clear()
            runs.append(_read_folder(path, root))
        runs += [
            _read_csv(path / name, root)
            for name in sorted(files)
            if name.startswith("seed-") and name.endswith(".csv")
            if not (path / name.removesuffix(".csv") / CONFIG).exists()
        ]
    if not runs:
        raise UserError(
            f"no runs in {root}: expected folders with a {CONFIG}, as written by `mrn train`, or "
            "files named TASK/ALGO-CRITIC/seed-SEED.csv"
        )
    if figures:
        runs = _without_copies(runs, root.resolve(), figures.resolve())
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
        info = read_run_info(path, imports=False)
    except UserError as error:
        return Run(path, "", path.name, "", 0, {}, problem=str(error))
    config, place = info.config, path.relative_to(root)
    default = config.folder.parts
    if path.absolute().parts[-len(default) :] == default:  # `root` may be part of it
        place = Path(*place.parts[: -len(default)])
    experiment = "" if place == Path() else place.as_posix()
    run = Run(path, experiment, config.task, config.method, config.seed, {}, info)
    if not run.metrics_file.exists():
        return replace(run, problem=NO_EPOCH)
    return _with_metrics(run)


def _read_csv(path: Path, root: Path) -> Run:
    task, method, _ = path.absolute().parts[-3:]
    seed = path.stem.removeprefix("seed-")
    place = Path(*path.relative_to(root).parts[:-3])
    experiment = "" if place == Path() else place.as_posix()
    run = Run(path, experiment, task, method, int(seed) if seed.isdecimal() else 0, {})
    if not seed.isdecimal():
        problem = f"{seed!r} is not a seed: name the file seed-SEED.csv, for example seed-100.csv"
        return replace(run, method="", problem=problem)
    if run.settings_file.exists():
        try:
            info = read_run_info_file(run.settings_file, imports=False)
        except UserError as error:
            return replace(run, problem=str(error))
        config = info.config
        if (safe_name(config.task), config.method, config.seed) != (task, method, run.seed):
            problem = f"{run.settings_file} holds the settings of another run, {config.folder}"
            return replace(run, problem=problem)
        run = replace(run, task=config.task, info=info)
    return _with_metrics(run)


def _with_metrics(run: Run) -> Run:
    try:
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
    return replace(run, columns=columns)


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
