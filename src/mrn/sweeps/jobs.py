"""The runs of a suite as jobs: where each belongs, and how far it is."""

import os
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from mrn.config import Config
from mrn.runs.layout import CONFIG, METRICS
from mrn.runs.metrics import read_metrics
from mrn.runs.provenance import read_config
from mrn.runs.run_dir import check_settings
from mrn.sweeps.suites import Suite
from mrn.utils.errors import UserError
from mrn.utils.files import read_error


class RunStatus(NamedTuple):
    """How far a run is."""

    epochs: int = 0
    success: float | None = None
    """Of the last epoch, if it was evaluated."""
    best: float = 0.0
    """The highest success so far."""


@dataclass(frozen=True)
class Job:
    """A run to train, and where."""

    config: Config
    folder: Path
    name: str

    @property
    def status(self) -> RunStatus:
        """How far it is. Its metrics are read only if they have changed since the last time.

        Raises:
            UserError: They cannot be read, or are damaged.
        """
        file = self.folder / METRICS
        state = _stat(file)
        if state is None:
            return RunStatus()
        # The file is replaced by each write, so a changed one is another one, too.
        return _read_status(file, state.st_ino, state.st_mtime_ns, state.st_size)

    @property
    def epochs(self) -> int:
        """Epochs to train."""
        return self.config.epochs or 1

    @property
    def epochs_done(self) -> int:
        """Rows of its metrics."""
        return self.status.epochs

    @property
    def finished(self) -> bool:
        """Whether all its epochs are there, or it has reached where it may stop."""
        stop_at = self.config.stop_at
        enough = stop_at is not None and self.epochs_done > 0 and self.status.best >= stop_at
        return enough or self.epochs_done >= self.epochs

    @property
    def root(self) -> Path:
        """The folder of its suite."""
        return self.folder.parents[len(self.config.folder.parts) - 1]


def current_status(job: Job) -> RunStatus:
    """How far it is, as far as can be read: to show it, or to count what may be counted wrong."""
    try:
        return job.status
    except UserError:
        return RunStatus()


@lru_cache(maxsize=4096)
def _read_status(file: Path, *_state: int) -> RunStatus:
    rows = read_metrics(file)
    if not rows:
        return RunStatus()
    return RunStatus(len(rows), rows[-1]["success"], max(row["success"] or 0.0 for row in rows))


def _stat(file: Path) -> os.stat_result | None:
    """What the system says of a file; None where there is none."""
    try:
        return file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise read_error(file, error) from None


REMEDY = (
    'Put those back, or give the suite another folder (folder = "NAME" at the top of its file) or '
    "the sweep another --runs"
)


def plan_jobs(suite: Suite, runs: Path, threads: int, only: str = "*") -> list[Job]:
    """The jobs of a suite below the folder of all runs, those whose names fit a pattern.

    A run that was begun keeps its number of threads: with another its digits may differ. One whose
    process was killed before its settings were written was not begun.

    Raises:
        UserError: A folder holds a run of other settings, or is damaged; or no name fits.
    """
    every = {config.folder.as_posix(): config for config in suite.configs()}
    wanted = [config for name, config in every.items() if fnmatchcase(name, only)]
    if not wanted:
        raise UserError(
            f"no run of the suite is called {only!r}: its {len(every)} runs are called "
            f"TASK/METHOD/seed-SEED, as {next(iter(every))}"
        )
    jobs = []
    for config in wanted:
        folder = (runs / suite.folder / config.folder).absolute()
        begun = read_config(folder) if _stat(folder / CONFIG) else None
        if begun is not None:
            check_settings(begun, config, str(folder), REMEDY)
        chosen = config.threads or (begun and begun.threads) or threads
        job = Job(replace(config, threads=chosen), folder, str(config.folder))
        _ = job.status  # damaged metrics are noticed before anything starts
        jobs.append(job)
    return jobs
