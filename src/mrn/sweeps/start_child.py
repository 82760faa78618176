"""Start the process of a single run. Run as a file, because `mrn` itself takes seconds to import.

The process must not outlive the sweep, not even while it starts. It therefore requests the signal
before it imports anything else, and then checks that the sweep is still alive.
"""

import ctypes
import os
import signal
import sys
from contextlib import suppress


def end_with_parent(parent: int) -> None:
    """Send this process SIGTERM when its parent exits (Linux only); exit if it already has."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        sys.exit(1)


if __name__ == "__main__":
    end_with_parent(int(sys.argv.pop(1)))
    from mrn.sweeps.child import main

    main()
