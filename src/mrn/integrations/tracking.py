"""A run's metrics and settings for a tracker, which shows many runs side by side."""

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
from mrn.runs.layout import METRICS, TRACKING
from mrn.runs.metrics import Row, read_metrics
from mrn.runs.tensorboard import scalars
from mrn.training.loop import Callback
from mrn.utils.errors import UserError, lookup
from mrn.utils.extras import import_extra
from mrn.utils.files import parse_json, read_limited, write_atomically
from mrn.utils.validation import NonNegativeInt, Validated, from_dict

PROJECT = "mrn"


@dataclass(frozen=True)
class Kept(Validated):
    """What a run's folder keeps of its tracking; by it a resumed run goes on in the same place."""

    tracker: str
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    """Of the run, where it is tracked."""
    epochs: NonNegativeInt = 0
    """How many were logged."""

    def __post_init__(self) -> None:
        """Check all: the file may come from anywhere."""
        super().__post_init__()
        lookup("tracker", self.tracker, TRACKERS)
        if not (self.id.isascii() and self.id.isalnum()):  # it becomes part of file names
            raise UserError(f"id must be letters and digits, got {self.id!r}")


class Opened(NamedTuple):
    """A tracked run that can be written to."""

    log: Callable[[dict[str, float], int], object]
    """Add metrics at a number of environment steps."""
    finish: Callable[[bool], object]
    """End it; True if training ended as it should."""


def _open_wandb(wandb: Any, kept: Kept, config: Config, folder: Path) -> Opened:
    mode = _wandb_mode(wandb)
    run = wandb.init(
        project=os.environ.get("WANDB_PROJECT", PROJECT),
        id=kept.id,
        resume="allow",
        mode=mode,
        dir=folder.absolute(),
        reinit="create_new",  # a run that the user has open is none of ours
        allow_val_change=True,  # --epochs of a resumed run
        # Its hands off our progress bar; and where nobody answers, the command ends all the same.
        settings={"console": "off", "silent": mode == "offline", "finish_timeout": 60},
        **_names(config),
    )
    return Opened(
        lambda metrics, step: run.log(metrics, step=step, commit=True),
        lambda well: run.finish(exit_code=0 if well else 1),
    )


def _wandb_mode(wandb: Any) -> str | None:
    """As the user has it; without an account `offline`, rather than be asked for one."""
    if os.environ.get("WANDB_MODE", "online") in ("offline", "dryrun", "disabled"):
        return None
    return None if wandb.login(prompt=False) else "offline"


def _open_trackio(trackio: Any, kept: Kept, config: Config, folder: Path) -> Opened:
    names = _names(config)
    # It knows a run by its name alone, and another folder may hold a run of the same settings.
    names["name"] += f" {kept.id}"
    run = trackio.init(project=PROJECT, resume="allow", embed=False, **names)
    return Opened(run.log, lambda _: trackio.finish())


def _names(config: Config) -> dict[str, Any]:
    """Seeds of one method on one task are a group."""
    return {
        "name": config.folder.as_posix(),
        "group": config.folder.parent.as_posix(),
        "config": flatten(config.to_dict()) | {"method": config.method},
    }


TRACKERS: dict[str, Callable[[Any, Kept, Config, Path], Opened]] = {
    "wandb": _open_wandb,
    "trackio": _open_trackio,
}
"""How a run is opened, by the name of the tracker, of its package and of our extra."""


class Tracker:
    """Follows a run at the end of each epoch; what fails here is warned of, and never ends it."""

    def __init__(self, kept: Kept, folder: Path) -> None:
        """Prepare; nothing is written before the run's first epoch.

        Raises:
            UserError: The tracker's package is missing.
        """
        self.kept, self.folder = kept, folder
        self.package = import_extra(kept.tracker, kept.tracker)
        self.opened: Opened | None = None
        self.failed = False

    def __call__(self, agent: Agent, row: Row) -> None:
        """Log all epochs of metrics.csv that were not: this one, and any that were missed."""
        if not self.failed:
            self._attempt(lambda: self._catch_up(agent.config))

    def _catch_up(self, config: Config) -> None:
        if self.opened is None:
            opener = TRACKERS[self.kept.tracker]
            self.opened = opener(self.package, self.kept, config, self.folder)
        # An epoch that is computed again after a crash is not logged again.
        for row in read_metrics(self.folder / METRICS)[self.kept.epochs :]:
            self.opened.log(scalars(row), int(row["env_steps"] or 0))
            self.kept = replace(self.kept, epochs=self.kept.epochs + 1)
            write_atomically(self.folder / TRACKING, json.dumps(asdict(self.kept)).encode())

    def close(self, well: bool) -> None:
        """End the tracked run, if there is one; `well` if training ended as it should."""
        opened, self.opened = self.opened, None
        if opened is not None:
            self._attempt(lambda: opened.finish(well))

    def _attempt(self, work: Callable[[], object]) -> None:
        """Do it, without what it prints among our output; warn of the first failure."""
        try:
            with redirect_stdout(io.StringIO()):
                work()
        except Exception as error:  # whatever a package, a network and a disk can raise
            if not self.failed:
                _warn(f"{self.kept.tracker} failed: {type(error).__name__}: {error}")
            self.failed = True


def _warn(what: str) -> None:
    warnings.warn(f"{what}; the run goes on without tracking", stacklevel=2)


@contextmanager
def open_trackers(name: str | None, folder: Path) -> Iterator[Sequence[Callback]]:
    """The callbacks that track a run: by the named tracker, or by the one the folder knows of.

    Args:
        name: `wandb` or `trackio`; None for the one the run was tracked by until now, if any.
        folder: The run's folder; nothing is written there before its first epoch.

    Raises:
        UserError: There is no such tracker, or its package is missing.
    """
    tracker = _find(name, folder)
    well = False
    try:
        yield [] if tracker is None else [tracker]
        well = True
    finally:
        if tracker is not None:
            tracker.close(well)


def _find(name: str | None, folder: Path) -> Tracker | None:
    if name is not None:
        lookup("tracker", name, TRACKERS)
    try:
        kept = _read(folder / TRACKING)
        if name is None:
            return None if kept is None else Tracker(kept, folder)
    except UserError as error:  # without a name it was not asked for: no reason not to resume
        if name is None:
            _warn(str(error))
            return None
        kept = None
    return Tracker(kept if kept is not None and kept.tracker == name else Kept(name), folder)


def _read(file: Path) -> Kept | None:
    """What is kept in a file of unknown origin, if it is there."""
    if not file.exists():
        return None
    kept: Kept = from_dict(Kept, parse_json(read_limited(file), str(file)), str(file))
    return kept
