"""One writer for a run folder."""

import errno
import fcntl
import os
import time
from pathlib import Path
from typing import IO

from mrn.runs.layout import LOCK
from mrn.utils.errors import UserError

_NO_LOCKS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS)
"""What `flock` answers where the storage has no file locks: some network file systems."""


class RunLock:
    """Holds a run folder for this process.

    The lock belongs to the open file, so the system releases it when the process ends, however
    it ends.
    """

    def __init__(self, folder: Path) -> None:
        """Take the lock.

        Raises:
            UserError: Another process has it, or there are no locks on this storage.
            OSError: The folder cannot be written to.
        """
        self._path = folder / LOCK
        self._file = open(self._path, "a+")  # noqa: SIM115 - open as long as it is held
        try:
            _flock(self._file)
            # A holder that ended in this moment has removed the file: it locks nothing any more.
            if os.fstat(self._file.fileno()).st_nlink == 0:
                raise BlockingIOError
        except OSError as error:
            self._file.seek(0)
            holder = self._file.read(20).strip() or "unknown"
            self._file.close()
            if isinstance(error, BlockingIOError):
                raise UserError(
                    f"another process (number {holder}) is training in {folder}; wait for it, "
                    "stop it, or choose another --run-dir"
                ) from None
            if error.errno in _NO_LOCKS:
                raise UserError(
                    f"the storage of {folder} has no file locks ({error.strerror}), without which "
                    "two processes could write to one run: choose a folder on another disk "
                    "(--run-dir or --runs), or mount this one with locks"
                ) from None
            raise
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    def close(self) -> None:
        """Release the folder."""
        self._path.unlink(missing_ok=True)
        self._file.close()


def _flock(file: IO[str], tries: int = 10) -> None:
    """Lock a file; `is_held` has it for a moment each time it is called, so try more than once."""
    for left in reversed(range(tries)):
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not left:
                raise
        time.sleep(0.03)
    return None


def is_held(folder: Path) -> bool:
    """Whether a process, of this machine or another on the same storage, has the run folder."""
    try:
        with open(folder / LOCK) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # there is no such file, or no such thing as a lock: the run will say so
        return False
    return False
