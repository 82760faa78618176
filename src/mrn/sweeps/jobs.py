"""Jobs: the runs of a suite, with their folder and progress."""

import os
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from mrn.config import Config
from mrn.runs.layout import CONFIG, METRICS, checkpoint_folders, run_file
from mrn.runs.metrics import is_finished, read_metrics
from mrn.runs.provenance import read_config
from mrn.runs.run_dir import check_settings
from mrn.runs.verify import confirm_finished
from mrn.sweeps.suites import Suite
from mrn.utils.errors import UserError
from mrn.utils.files import read_error
from mrn.utils.validation import check_unicode


class RunStatus(NamedTuple):
    """Progress of a run."""

    curve: tuple[float | None, ...] = ()
    """Success rate after each epoch; None if it was not evaluated."""

    @property
    def epochs(self) -> int:
        """Number of finished epochs."""
        return len(self.curve)

    @property
    def success(self) -> float | None:
        """Success rate after the last epoch."""
        return self.curve[-1] if self.curve else None


@dataclass(frozen=True)
class Job:
    """A run of a sweep: its configuration, folder and name."""

    config: Config
    folder: Path
    name: str

    @property
    def status(self) -> RunStatus:
        """Progress of the run. The metrics are read again only if the file changed.

        Raises:
            UserError: The metrics are unreadable or damaged.
        """
        version = _version(self.folder)
        return _read_status(run_file(self.folder, METRICS), *version) if version else RunStatus()

    @property
    def epochs(self) -> int:
        """Number of epochs to train."""
        return self.config.epochs or 1

    @property
    def epochs_done(self) -> int:
        """Number of finished epochs."""
        return self.status.epochs

    @property
    def finished(self) -> bool:
        """Whether the run trained all its epochs or reached `stop_at`, as `mrn resume` judges it.

        Raises:
            UserError: The metrics are unreadable, or checkpoint or weights contradict them.
        """
        rows = [{"success": success} for success in self.status.curve]
        if not is_finished(rows, self.config.epochs, self.config.stop_at):
            return False
        newest = [path.name for path in checkpoint_folders(self.folder)[-1:]]
        return _confirm(self.folder, self.config, *_version(self.folder), *newest)

    @property
    def root(self) -> Path:
        """Folder of the suite."""
        return self.folder.parents[len(self.config.folder.parts) - 1]


def current_status(job: Job) -> RunStatus:
    """Return the progress of a run for display; an empty status if it is unreadable."""
    try:
        return job.status
    except UserError:
        return RunStatus()


@lru_cache(maxsize=4096)
def _read_status(file: Path, *_state: int) -> RunStatus:
    return RunStatus(tuple(row["success"] for row in read_metrics(file)))


@lru_cache(maxsize=4096)
def _confirm(folder: Path, config: Config, *_version: object) -> bool:
    return confirm_finished(folder, config)


def _version(folder: Path) -> tuple[int, ...]:
    """Return what identifies the content of a run's metrics; empty if there are none."""
    state = _stat(run_file(folder, METRICS))
    # Every write replaces the file, so a new inode also means new content.
    return (state.st_ino, state.st_mtime_ns, state.st_size) if state else ()


def _stat(file: Path) -> os.stat_result | None:
    """Return the file's status, or None if it does not exist."""
    try:
        return file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise read_error(file, error) from None


REMEDY = (
    'Restore those settings, set another folder in the suite (folder = "NAME" at the top of its '
    "file), or pass another --runs"
)


def plan_jobs(suite: Suite, runs: Path, threads: int, only: str = "*") -> list[Job]:
    """Return the jobs of a suite whose names match a pattern.

    Args:
        suite: The suite.
        runs: Folder of all runs.
        threads: CPU threads of each new run.
        only: Shell pattern of names, TASK/METHOD/seed-SEED.

    Raises:
        UserError: A folder holds a run with other settings or is damaged, or no name matches.
    """
    check_unicode("runs", runs)
    configs = {config.folder.as_posix(): config for config in suite.configs()}
    selected = [config for name, config in configs.items() if fnmatchcase(name, only)]
    if not selected:
        raise UserError(
            f"no run of the suite matches {only!r}: its {len(configs)} runs are named "
            f"TASK/METHOD/seed-SEED, for example {next(iter(configs))}"
        )
    root = runs / suite.folder
    return [plan_job(config, root, threads, REMEDY) for config in selected]


def plan_job(config: Config, root: Path, threads: int, remedy: str) -> Job:
    """Return the job of a run below a folder; `remedy` ends the error about other settings.

    A started run keeps its number of threads, because results may differ in the last digits. A run
    counts as started once its settings are written.

    Raises:
        UserError: The folder holds a run with other settings, or is damaged.
    """
    folder = (root / config.folder).absolute()
    started = read_config(folder) if _stat(folder / CONFIG) else None
    if started is not None:
        check_settings(started, config, str(folder), remedy)
    chosen = config.threads or (started and started.threads) or threads
    job = Job(replace(config, threads=chosen), folder, str(config.folder))
    _ = job.finished  # raises for damaged metrics before any run starts
    return job
