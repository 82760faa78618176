"""Logging of metrics and settings to an experiment tracker: W&B or trackio."""

import io
import json
import os
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from mrn.agent import Agent
from mrn.config import Config, flatten
from mrn.runs.layout import METRICS, TRACKING, run_file
from mrn.runs.metrics import Row, read_metrics
from mrn.runs.open_folder import OpenFolder
from mrn.runs.tensorboard import scalars
from mrn.training.callbacks import Callback
from mrn.utils.errors import UserError, lookup
from mrn.utils.extras import import_extra
from mrn.utils.files import parse_json, read_limited, write_atomically
from mrn.utils.validation import NonNegativeInt, Validated, from_dict

PROJECT = "mrn"


@dataclass(frozen=True)
class TrackingState(Validated):
    """Content of tracking.json, with which a resumed run continues the same tracked run."""

    tracker: str
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    """ID of the run in the tracker."""
    epochs: NonNegativeInt = 0
    """Number of logged epochs."""

    def __post_init__(self) -> None:
        """Validate everything: the file is untrusted."""
        super().__post_init__()
        lookup("tracker", self.tracker, TRACKERS)
        if not (self.id.isascii() and self.id.isalnum()):  # used in file names
            raise UserError(f"id must consist of letters and digits, got {self.id!r}")


class TrackedRun(NamedTuple):
    """Open run of a tracker."""

    log: Callable[[dict[str, float], int], object]
    """Log metrics at a number of environment steps."""
    finish: Callable[[bool], object]
    """Finish the run; the argument is True if training succeeded."""


def _open_wandb(wandb: Any, state: TrackingState, config: Config, folder: Path) -> TrackedRun:
    mode = _wandb_mode(wandb)
    run = wandb.init(
        project=os.environ.get("WANDB_PROJECT", PROJECT),
        id=state.id,
        resume="allow",
        mode=mode,
        dir=folder.absolute(),
        reinit="create_new",  # leave other open runs alone
        allow_val_change=True,  # a resumed run may have more epochs
        # Leave the progress bar alone, and do not hang if the server does not respond.
        settings={"console": "off", "silent": mode == "offline", "finish_timeout": 60},
        **_names(config),
    )
    return TrackedRun(
        lambda metrics, step: run.log(metrics, step=step, commit=True),
        lambda succeeded: run.finish(exit_code=0 if succeeded else 1),
    )


def _wandb_mode(wandb: Any) -> str | None:
    """Return the user's mode (None), or `offline` without an account, to avoid a login prompt."""
    if os.environ.get("WANDB_MODE", "online") in ("offline", "dryrun", "disabled"):
        return None
    return None if wandb.login(prompt=False) else "offline"


def _open_trackio(trackio: Any, state: TrackingState, config: Config, folder: Path) -> TrackedRun:
    names = _names(config)
    # trackio identifies a run by name, and another folder may hold a run with the same settings.
    names["name"] += f" {state.id}"
    run = trackio.init(project=PROJECT, resume="allow", embed=False, **names)
    return TrackedRun(run.log, lambda _: trackio.finish())


def _names(config: Config) -> dict[str, Any]:
    """Return name, group and config of a run; seeds of one method on one task form a group."""
    return {
        "name": config.folder.as_posix(),
        "group": config.folder.parent.as_posix(),
        "config": flatten(config.to_dict()) | {"method": config.method},
    }


TRACKERS: dict[str, Callable[[Any, TrackingState, Config, Path], TrackedRun]] = {
    "wandb": _open_wandb,
    "trackio": _open_trackio,
}
"""Functions that open a run. The key is tracker, Python package and extra at once."""


class Tracker(Callback):
    """Callback that logs each epoch. Failures only cause a warning and never stop the run."""

    def __init__(self, state: TrackingState, folder: Path) -> None:
        """Import the tracker's package. Nothing is written before the first epoch.

        Raises:
            UserError: The tracker's package is missing.
        """
        self.state, self.folder = state, folder
        self.package = import_extra(state.tracker, state.tracker)
        self.run: TrackedRun | None = None
        self.opened: OpenFolder | None = None  # with the first epoch
        self.failed = False

    def on_epoch(self, agent: Agent, row: Row) -> None:
        """Log all epochs of metrics.csv that have not been logged yet."""
        if not self.failed:
            self._attempt(lambda: self._log_new_epochs(agent.config))

    def _log_new_epochs(self, config: Config) -> None:
        if self.opened is None:
            self.opened = OpenFolder(self.folder)
        if self.run is None:
            open_run = TRACKERS[self.state.tracker]
            self.run = open_run(self.package, self.state, config, self.folder)
        # An epoch that is repeated after a crash is not logged again.
        for row in read_metrics(self.folder / METRICS)[self.state.epochs :]:
            self.run.log(scalars(row), int(row["env_steps"] or 0))
            self.state = replace(self.state, epochs=self.state.epochs + 1)
            self.opened.check()  # a tracker can be slow
            write_atomically(self.folder / TRACKING, json.dumps(asdict(self.state)).encode())

    def close(self, succeeded: bool) -> None:
        """Finish the tracked run, if there is one; `succeeded` is False after an exception."""
        run, self.run = self.run, None
        if run is not None:
            self._attempt(lambda: run.finish(succeeded))
        if self.opened is not None:
            self.opened.close()

    def _attempt(self, work: Callable[[], object]) -> None:
        """Call `work` with stdout silenced, and warn about the first failure."""
        try:
            with redirect_stdout(io.StringIO()):
                work()
        except Exception as error:  # packages, network and disk can raise anything
            if not self.failed:
                _warn(f"{self.state.tracker} failed: {type(error).__name__}: {error}")
            self.failed = True


def _warn(reason: str) -> None:
    warnings.warn(f"{reason}; the run continues without tracking", stacklevel=2)


@contextmanager
def open_trackers(name: str | None, folder: Path) -> Iterator[Sequence[Callback]]:
    """Return the callbacks that track a run, and finish the tracked run at the end of the block.

    Args:
        name: `wandb` or `trackio`; None for the tracker that the run has used so far, if any.
        folder: Run folder. Nothing is written there before the first epoch.

    Raises:
        UserError: The tracker is unknown, its package is missing, or tracking.json is a link that
            leads out of the folder.
    """
    tracker = _find_tracker(name, folder)
    succeeded = False
    try:
        yield [] if tracker is None else [tracker]
        succeeded = True
    finally:
        if tracker is not None:
            tracker.close(succeeded)


def _find_tracker(name: str | None, folder: Path) -> Tracker | None:
    if name is not None:
        lookup("tracker", name, TRACKERS)
    file = run_file(folder, TRACKING)
    try:
        state = _read_state(file)
        if name is None:
            return None if state is None else Tracker(state, folder)
    except UserError as error:  # tracking was not requested, so it must not prevent resuming
        if name is None:
            _warn(str(error))
            return None
        state = None
    if state is None or state.tracker != name:
        state = TrackingState(name)
    return Tracker(state, folder)


def _read_state(file: Path) -> TrackingState | None:
    """Return the content of an untrusted tracking.json, or None if there is none."""
    if not os.path.lexists(file):
        return None
    data = parse_json(read_limited(file), str(file))
    state: TrackingState = from_dict(TrackingState, data, str(file))
    return state
