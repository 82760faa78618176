"""A run of a sweep, in a process of its own, which saves and ends when the sweep does."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from mrn.config import Config
from mrn.training.loop import run
from mrn.utils.device import tune_allocator
from mrn.utils.errors import report_errors
from mrn.utils.files import parse_json
from mrn.utils.signals import set_parent_death_signal


def train_job(
    settings: dict[str, Any], folder: Path, home: str | None = None, progress: bool = False
) -> None:
    """Train a run, or go on with it, in this process.

    Args:
        settings: Of the run, as JSON has them: a process elsewhere may not know a user's classes.
        folder: Of the run.
        home: The sweep's current folder, where a user's own modules may be.
        progress: Whether to show how it goes.
    """
    if home is not None and home not in sys.path:
        sys.path.append(home)
    tune_allocator()
    run(Config.from_json(settings, "the sweep"), folder, progress, resume=True)


SESSION = Path("/proc/self/autogroup")
"""Where Linux, if it groups processes by session, is told how nice the session of one is."""
ATTEMPTS = 50
"""As many runs may begin at once."""


def apply_niceness(session: Path = SESSION) -> None:
    """Make the `nice` of a sweep felt by other sessions.

    A run has a session of its own, and Linux, where it groups processes, divides the processor
    between sessions first; niceness counts within one. A run at 19 would get as much as any other.
    """
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    if niceness <= 0 or not session.exists():
        return
    for _ in range(ATTEMPTS):
        try:
            session.write_text(str(niceness))
            return
        except BlockingIOError:  # one is told each tenth of a second, of all that ask
            time.sleep(0.1)
        except OSError:  # not here; and a run is not worth less for it
            return


def main() -> None:
    """Train in the folder that is named, by the settings that come as JSON from the sweep."""
    set_parent_death_signal(signal.SIGTERM)
    apply_niceness()
    with report_errors():
        settings = parse_json(sys.stdin.read(), "the sweep's settings")
        train_job(settings, Path(sys.argv[1]), progress=True)


if __name__ == "__main__":
    main()
