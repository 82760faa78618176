"""Functions of a sweep that run on the machines of a Ray cluster."""

import os
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from mrn.runs.lock import is_held
from mrn.runs.provenance import versions
from mrn.sweeps.child import open_log, train_job
from mrn.utils.errors import UserError
from mrn.utils.plugins import import_plugin


class MachineReport(NamedTuple):
    """What a machine found before the sweep starts."""

    sees_lock: bool
    """Whether the lock of the sweep is visible."""
    versions: dict[str, str]


def check_machine(marker: Path, home: str, modules: Iterable[str], name: str) -> MachineReport:
    """Check that this machine can train runs of the sweep.

    Args:
        marker: Folder that the sweep created and locked in the folder of the runs.
        home: Working directory of the sweep, from which custom modules may be imported.
        modules: Custom modules of the runs.
        name: Name of a file to write to the marker, which the sweep reads.

    Raises:
        UserError: The folder of the runs is not shared, or a module cannot be imported.
    """
    _check_shared(marker)
    (marker / name).touch()
    if home not in sys.path:
        sys.path.append(home)
    for module in modules:
        import_plugin(module)
    return MachineReport(is_held(marker), versions())


def train_logged(settings: dict[str, Any], folder: Path, home: str, marker: Path) -> None:
    """Train or resume a run in this process, and append its output to the log of the run.

    Args:
        settings: Settings of the run as JSON types.
        folder: Folder of the run.
        home: Working directory of the sweep.
        marker: See `check_machine`; this machine may have joined the cluster later.

    Raises:
        UserError: The folder of the runs is not shared, or the run failed.
    """
    _check_shared(marker)
    with open_log(folder) as log:
        for number, stream in ((1, "stdout"), (2, "stderr")):  # this process trains nothing else
            os.dup2(log.fileno(), number)
            setattr(sys, stream, open(number, "w", encoding="utf-8", buffering=1, closefd=False))  # noqa: SIM115
    try:
        train_job(settings, folder, home, progress=True)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        raise
    except Exception:
        traceback.print_exc()
        raise


def _check_shared(marker: Path) -> None:
    if not marker.is_dir():
        raise UserError(
            f"it does not see the contents of {marker.parent}: put --runs on storage that all "
            "machines share, or divide the suite with --only"
        )
