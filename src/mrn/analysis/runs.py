"""Finished and unfinished runs, read from their folders, and put in groups to compare."""

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
from mrn.runs.metrics import read_metrics
from mrn.runs.provenance import RunInfo, read_run_info, read_run_info_file
from mrn.utils.errors import UserError
from mrn.utils.naming import safe_name
from mrn.utils.plotting import sort_methods

NOT_YET = "no epoch is finished"
NEVER = "it was never evaluated (eval_episodes is 0)"

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """A run's place among others and its metrics, a value per finished epoch."""

    path: Path
    experiment: str
    """The folder that its suite wrote to; empty for runs directly below the folder given."""
    task: str
    method: str
    """What is compared: agent, critic, and the variant where there is one."""
    seed: int
    columns: dict[str, Array]
    """Of metrics.csv; NaN where nothing was measured."""
    about: RunInfo | None = None
    """Its settings; unknown for a CSV alone."""
    problem: str = ""
    """Why it has no metrics."""

    @property
    def config(self) -> Config | None:
        """Its settings, as far as they are known."""
        return None if self.about is None else self.about.config

    @property
    def metrics_file(self) -> Path:
        """Where its metrics are."""
        return self.path / METRICS if self.path.is_dir() else self.path

    @property
    def settings_file(self) -> Path:
        """Where its settings are, if they were kept."""
        return self.path / CONFIG if self.path.is_dir() else self.path.with_suffix(".json")

    @property
    def name(self) -> str:
        """As a person would say it."""
        return "/".join(filter(None, (self.experiment, self.task, self.method, str(self.seed))))

    @property
    def epochs(self) -> int:
        """Epochs finished."""
        return len(self.success)

    @property
    def stopped(self) -> bool:
        """Whether it ended before its last epoch because it was as good as it was to be."""
        if self.config is None or self.config.stop_at is None:
            return False
        early = self.config.epochs is None or self.epochs < self.config.epochs
        return early and bool((self.success >= self.config.stop_at).any())

    @property
    def planned(self) -> int:
        """Epochs that the run was started for, as far as is known; fewer if it stopped early."""
        if self.stopped:
            return self.epochs
        return (self.config and self.config.epochs) or self.epochs

    @property
    def finished(self) -> bool:
        """Whether it has got as far as it was to."""
        return not self.problem and self.epochs >= self.planned

    @property
    def is_final(self) -> bool:
        """Whether nothing more will be seen of it: it is finished, or shows nothing by choice."""
        return self.finished or self.problem == NEVER

    @property
    def success(self) -> Array:
        """Success rate at the last step, per epoch."""
        return self.columns.get("success", np.empty(0))

    @cached_property
    def seconds(self) -> Array:
        """Wall-clock time until the end of each epoch: playing, learning and evaluating."""
        names = ("rollout_seconds", "update_seconds", "evaluation_seconds")
        return np.cumsum(sum(np.nan_to_num(self.columns[name]) for name in names))

    @cached_property
    def episodes(self) -> Array:
        """Training episodes played until the end of each epoch."""
        if self.config is not None:
            plan = self.config.schedule
            return self.columns["epoch"] * plan.cycles * plan.num_envs
        if self.task in TASKS:
            return self.columns["env_steps"] / TASKS[self.task].spec.horizon
        return np.full(self.epochs, np.nan)


def find_runs(root: Path, drawn: Path | None = None) -> list[Run]:
    """All runs below a folder: run folders, and CSVs named TASK/AGENT-CRITIC/seed-SEED.csv.

    A CSV may have its run's settings beside it, as seed-SEED.json. One that is beside its own run's
    folder, where `mrn figures RUNS -o RUNS` puts it, is that run and not another. A damaged run is
    there with its `problem` and without metrics.

    Args:
        root: The folder.
        drawn: A folder in which CSVs may be copies that `mrn figures` made of these runs.

    Raises:
        UserError: There is no such folder, or no run in it, or two of the same name.
    """
    if not root.is_dir():
        raise UserError(f"there is no folder {root}")
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
            f"no runs in {root}: neither a folder with a {CONFIG}, as mrn train makes, nor a "
            "TASK/AGENT-CRITIC/seed-SEED.csv"
        )
    if drawn:
        runs = _without_copies(runs, root.resolve(), drawn.resolve())
    _refuse_twins(runs)
    return runs


def _without_copies(runs: list[Run], root: Path, drawn: Path) -> list[Run]:
    """All but the CSVs in a folder below the root whose runs are there outside of it, too."""
    if root not in drawn.parents:
        return runs
    prefix = drawn.relative_to(root).as_posix()
    inside: list[Run] = []
    others: list[Run] = []
    for run in runs:
        is_copy = run.path.suffix == ".csv" and drawn in run.path.resolve().parents
        (inside if is_copy else others).append(run)
    known = {(run.experiment, run.task, run.method, run.seed) for run in others}

    def original(run: Run) -> tuple[str, str, str, int]:
        place = run.experiment.removeprefix(prefix).lstrip("/")
        return place, run.task, run.method, run.seed

    return others + [run for run in inside if original(run) not in known]


def _refuse_twins(runs: list[Run]) -> None:
    """A seed that is there twice would count twice."""
    first: dict[tuple[str, str, str, int], Run] = {}
    for run in runs:
        other = first.setdefault((run.experiment, run.task, run.method, run.seed), run)
        if other is not run and run.method:  # without settings nobody knows what it is
            raise UserError(
                f"two runs of {run.name}: {other.path} and {run.path}; each seed counts once: "
                "remove one of them, or move it to a folder of its own"
            )


def _read_folder(path: Path, root: Path) -> Run:
    try:
        about = read_run_info(path, imports=False)
    except UserError as error:
        return Run(path, "", path.name, "", 0, {}, problem=str(error))
    config, place = about.config, path.relative_to(root)
    usual = config.folder.parts
    if path.absolute().parts[-len(usual) :] == usual:  # where `root` may itself be part of it
        place = Path(*place.parts[: -len(usual)])
    experiment = "" if place == Path() else place.as_posix()
    run = Run(path, experiment, config.task, config.method, config.seed, {}, about)
    if not run.metrics_file.exists():
        return replace(run, problem=NOT_YET)
    return _with_metrics(run)


def _read_csv(path: Path, root: Path) -> Run:
    task, method, _ = path.absolute().parts[-3:]
    seed = path.stem.removeprefix("seed-")
    place = Path(*path.relative_to(root).parts[:-3])
    experiment = "" if place == Path() else place.as_posix()
    run = Run(path, experiment, task, method, int(seed) if seed.isdecimal() else 0, {})
    if not seed.isdecimal():
        problem = (
            f"{seed!r} is not a seed: a file of metrics is called seed-SEED.csv, as seed-100.csv"
        )
        return replace(run, method="", problem=problem)
    if run.settings_file.exists():
        try:
            about = read_run_info_file(run.settings_file, imports=False)
        except UserError as error:
            return replace(run, problem=str(error))
        config = about.config
        if (safe_name(config.task), config.method, config.seed) != (task, method, run.seed):
            problem = f"{run.settings_file} holds the settings of another run, {config.folder}"
            return replace(run, problem=problem)
        run = replace(run, task=config.task, about=about)
    return _with_metrics(run)


def _with_metrics(run: Run) -> Run:
    try:
        rows = read_metrics(run.metrics_file)
    except UserError as error:
        return replace(run, problem=str(error))
    if not rows:
        return replace(run, problem=NOT_YET)
    columns = {
        name: np.array([np.nan if row[name] is None else row[name] for row in rows], np.float64)
        for name in rows[0]
    }
    if np.isnan(columns["success"]).all():
        return replace(run, problem=NEVER)
    return replace(run, columns=columns)


Groups = dict[str, dict[str, dict[str, list[Run]]]]
"""Runs by experiment, task and method."""


def group(runs: Iterable[Run]) -> Groups:
    """Runs that have metrics, by experiment, task (in the paper's order) and method."""
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
