"""One writer for a run folder."""

import fcntl
import os
from pathlib import Path

from mrn.errors import UserError

LOCK = ".lock"


class RunLock:
    """Holds a run folder for this process.

    The lock belongs to the open file, so the system releases it when the process ends, however
    it ends.
    """

    def __init__(self, folder: Path) -> None:
        """Take the lock, or say who has it."""
        self._path = folder / LOCK
        self._file = open(self._path, "a+")  # noqa: SIM115 - open as long as it is held
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A holder that ended in this moment has removed the file: it locks nothing any more.
            if os.fstat(self._file.fileno()).st_nlink == 0:
                raise BlockingIOError
        except OSError:
            self._file.seek(0)
            holder = self._file.read(20).strip() or "unknown"
            self._file.close()
            raise UserError(
                f"another process (number {holder}) is training in {folder}; wait for it, stop it, "
                "or choose another --run-dir"
            ) from None
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    def close(self) -> None:
        """Release the folder."""
        self._path.unlink(missing_ok=True)
        self._file.close()
