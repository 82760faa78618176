"""A run, finished or not, with what it is compared by."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mrn.config import Config
from mrn.envs import TASKS
from mrn.runs.layout import CONFIG, METRICS
from mrn.runs.metrics import is_finished, reached_stop_at
from mrn.runs.provenance import RunInfo

NO_EPOCH = "no epoch is finished yet"
NEVER_EVALUATED = "it was never evaluated (eval_episodes is 0)"
PRUNED = "pruned by mrn tune"

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """A run: what it is compared by, and its metrics, one value per finished epoch."""

    path: Path
    experiment: str
    """Which runs it is compared with: the folder of its suite, relative to the root. Empty for
    runs directly below the root, and for run folders with custom names."""
    task: str
    method: str
    """ALGO-CRITIC, plus recipe and variant if any."""
    seed: int
    columns: dict[str, Array]
    """Columns of metrics.csv; NaN where nothing was measured."""
    info: RunInfo | None = None
    """Settings, versions and machine; None for a CSV without them."""
    problem: str = ""
    """Why the run has no metrics or is not compared; empty otherwise."""
    confirmed: bool = True
    """Whether checkpoint or weights confirm that it is finished, if the metrics say so."""

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
        return not self.problem and self.confirmed and is_finished(self._rows, epochs, stop_at)

    @property
    def _rows(self) -> list[dict[str, float | None]]:
        return [{"success": None if np.isnan(value) else value} for value in self.success.tolist()]

    @property
    def is_final(self) -> bool:
        """Whether no more results will follow: it is finished, damaged or never evaluated."""
        return self.finished or self.problem not in ("", NO_EPOCH)

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

    @property
    def has_default_place(self) -> bool:
        """Whether it is in TASK/ALGO-CRITIC/seed-SEED, not in a folder with a custom name."""
        if self.config is None or self.path.suffix == ".csv":
            return True
        default = self.config.folder.parts
        return self.path.absolute().parts[-len(default) :] == default
