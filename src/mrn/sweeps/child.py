"""Process of a single run of a sweep. A local one saves and exits when the sweep exits."""

import os
import sys
import time
from pathlib import Path
from typing import IO, Any

from mrn.config import Config
from mrn.runs.layout import log_file
from mrn.runs.lock import LockedError
from mrn.training.loop import run
from mrn.utils.device import tune_allocator
from mrn.utils.errors import RunError, UserError, report_errors
from mrn.utils.files import open_own, parse_json
from mrn.utils.plugins import forbid_exit


def train_job(
    settings: dict[str, Any], folder: Path, home: str | None = None, progress: bool = False
) -> None:
    """Train or resume a run in this process.

    Args:
        settings: Settings of the run as JSON types, because another machine may not be able to
            unpickle custom classes.
        folder: Folder of the run.
        home: Working directory of the sweep, from which custom modules may be imported.
        progress: Whether to print progress.
    """
    if home is not None and home not in sys.path:
        sys.path.append(home)
    tune_allocator()
    # The suite that the user passed to the sweep names the modules.
    with forbid_exit():
        run(Config.from_json(settings, "the sweep", trust_code=True), folder, progress, resume=True)


RESTARTED = "--- restarted"
"""Line in a log that separates the output of two processes."""


def open_log(folder: Path) -> IO[bytes]:
    """Open the log of a run to append the output of a new process.

    Raises:
        UserError: It is not writable, or not a regular file.
    """
    path = log_file(folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = open_own(path, "ab")
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from None
    if os.fstat(log.fileno()).st_nlink > 1:  # appending would change another file
        log.close()
        raise UserError(f"{path} is a hard link to another file; remove it")
    if log.tell():
        log.write(f"{RESTARTED} {time.strftime('%Y-%m-%d %H:%M:%S')}\n".encode())
        log.flush()
    return log


LOCKED_EXIT_CODE = 75
"""Exit code if another process is training the run; EX_TEMPFAIL in C."""
AUTOGROUP = Path("/proc/self/autogroup")
"""File that sets the niceness of a session, on Linux with autogroup scheduling."""
ATTEMPTS = 50
"""Number of runs that may start simultaneously."""


def apply_niceness(autogroup: Path = AUTOGROUP) -> None:
    """Apply the niceness of the sweep to the session of this run.

    Each run has its own session. Linux with autogroup scheduling divides CPU time between sessions
    first, and niceness counts only within one. Without this, a run at 19 would get a full share.
    """
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    if niceness <= 0 or not autogroup.exists():
        return
    for _ in range(ATTEMPTS):
        try:
            autogroup.write_text(str(niceness), encoding="utf-8")
            return
        except BlockingIOError:  # Linux accepts one write per 0.1 s, system-wide
            time.sleep(0.1)
        except OSError:  # not supported; training does not depend on it
            return


def main() -> None:
    """Train in the folder given as argument, with settings read as JSON from stdin."""
    apply_niceness()
    with report_errors():
        settings = parse_json(sys.stdin.read(), "the sweep's settings")
        try:
            train_job(settings, Path(sys.argv[1]), progress=True)
        except LockedError:
            sys.exit(LOCKED_EXIT_CODE)


if __name__ == "__main__":
    main()
