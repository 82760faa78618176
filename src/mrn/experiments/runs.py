"""Finished and unfinished runs, read from their folders, and put in groups to compare."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mrn.config import Config, flatten
from mrn.envs import TASKS
from mrn.errors import UserError
from mrn.plotting import in_order
from mrn.training.layout import CONFIG, METRICS
from mrn.training.metrics import read_metrics
from mrn.training.rundir import CHANGEABLE, read_about

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
    config: Config | None = None
    """Unknown for a CSV alone."""
    versions: tuple[tuple[str, str], ...] = ()
    problem: str = ""
    """Why it has no metrics."""

    @property
    def name(self) -> str:
        """As a person would say it."""
        return "/".join(filter(None, (self.experiment, self.task, self.method, str(self.seed))))

    @property
    def epochs(self) -> int:
        """Epochs finished."""
        return len(self.success)

    @property
    def planned(self) -> int:
        """Epochs that the run was started for, as far as is known."""
        return (self.config and self.config.epochs) or self.epochs

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
            return self.columns["epoch"] * plan.cycles * plan.episodes
        if self.task in TASKS:
            return self.columns["env_steps"] / TASKS[self.task].shape.horizon
        return np.full(self.epochs, np.nan)


def find_runs(root: Path) -> list[Run]:
    """All runs below a folder: run folders, and CSVs named TASK/AGENT-CRITIC/seed-SEED.csv.

    A damaged one is there with its `problem` and without metrics.

    Raises:
        UserError: There is no such folder, or no run in it.
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
        ]
    if not runs:
        raise UserError(
            f"no runs in {root}: neither a folder with a {CONFIG}, as mrn train makes, nor a "
            "TASK/AGENT-CRITIC/seed-SEED.csv"
        )
    return runs


def _read_folder(path: Path, root: Path) -> Run:
    try:
        config, versions, *_ = read_about(path)
    except UserError as error:
        return Run(path, "", path.name, "", 0, {}, problem=str(error))
    place, usual = path.relative_to(root), config.folder
    if place.parts[-len(usual.parts) :] == usual.parts:
        place = Path(*place.parts[: -len(usual.parts)])
    run = Run(
        path,
        "" if place == Path() else place.as_posix(),
        config.task,
        config.method,
        config.seed,
        {},
        config,
        tuple(sorted(versions.items())),
    )
    file = path / METRICS
    if not file.exists():
        return replace(run, problem="no epoch is finished")
    return _with_metrics(run, file)


def _read_csv(path: Path, root: Path) -> Run:
    parts = path.absolute().parts
    seed = path.stem.removeprefix("seed-")
    place = Path(*path.relative_to(root).parts[:-3])
    experiment = "" if place == Path() else place.as_posix()
    number = int(seed) if seed.isdecimal() else 0
    return _with_metrics(Run(path, experiment, parts[-3], parts[-2], number, {}), path)


def _with_metrics(run: Run, file: Path) -> Run:
    try:
        rows = read_metrics(file)
    except UserError as error:
        return replace(run, problem=str(error))
    if not rows:
        return replace(run, problem="no epoch is finished")
    columns = {
        name: np.array([np.nan if row[name] is None else row[name] for row in rows], np.float64)
        for name in rows[0]
    }
    if np.isnan(columns["success"]).all():
        return replace(run, problem="it was never evaluated (eval_episodes is 0)")
    return replace(run, columns=columns)


Groups = dict[str, dict[str, dict[str, list[Run]]]]
"""Runs by experiment, task and method."""


def group(runs: Iterable[Run]) -> Groups:
    """Runs that have metrics, by experiment, task (in the paper's order) and method."""
    usable = [run for run in runs if not run.problem]
    place = {name: index for index, name in enumerate(TASKS)}
    rank = {name: index for index, name in enumerate(in_order({run.method for run in usable}))}

    def order(run: Run) -> tuple[str, int, str, int, int]:
        task = place.get(run.task, len(place))
        return run.experiment, task, run.task, rank[run.method], run.seed

    usable.sort(key=order)
    groups: Groups = {}
    for run in usable:
        tasks = groups.setdefault(run.experiment, {})
        tasks.setdefault(run.task, {}).setdefault(run.method, []).append(run)
    return groups


def differing_settings(runs: Iterable[Run]) -> list[str]:
    """Settings in which runs differ that are averaged as if they did not; seeds aside."""
    known = [flatten(run.config.to_dict()) for run in runs if run.config is not None]
    names = known[0] if known else {}
    ignored = (*CHANGEABLE, "seed")
    return [n for n in names if n not in ignored and any(s[n] != known[0][n] for s in known)]


def curves(runs: list[Run]) -> Array:
    """Success per run and epoch, shape (runs, epochs); NaN where a run has not got that far."""
    table = np.full((len(runs), max(run.epochs for run in runs)), np.nan)
    for row, run in zip(table, runs, strict=True):
        row[: run.epochs] = run.success
    return table
