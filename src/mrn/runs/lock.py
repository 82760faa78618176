"""Exclusive lock on a run folder."""

import errno
import fcntl
import os
import time
from pathlib import Path
from typing import IO

from mrn.runs.layout import LOCK
from mrn.utils.errors import UserError

_NO_LOCKS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS)
"""Error codes of `flock` on storage without file locks, such as some network file systems."""


class LockedError(UserError):
    """Another process holds the lock."""


class RunLock:
    """Exclusive lock of this process on a run folder.

    The lock belongs to the open file, so the operating system releases it when the process exits
    for any reason.
    """

    def __init__(self, folder: Path) -> None:
        """Acquire the lock.

        Raises:
            LockedError: Another process holds the lock.
            UserError: The storage does not support locks.
            OSError: The folder is not writable.
        """
        self._path = folder / LOCK
        try:
            self._file = _open_locked(self._path)
        except BlockingIOError as error:
            raise LockedError(
                f"another process (PID {error.strerror}) is training in {folder}; wait for it, "
                "stop it, or choose another run_dir"
            ) from None
        except OSError as error:
            if error.errno in _NO_LOCKS:
                raise UserError(
                    f"the storage of {folder} does not support file locks ({error.strerror}), "
                    "which keep two processes from writing to the same run: choose a folder on "
                    "another disk, or mount this one with locks"
                ) from None
            raise
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    def close(self) -> None:
        """Release the lock."""
        self._path.unlink(missing_ok=True)
        self._file.close()


def _open_locked(path: Path, attempts: int = 10) -> IO[str]:
    """Open and lock a file.

    Retry, because `is_held` takes the lock for a moment. A holder that exits removes its file, and
    a lock on a removed file has no effect, so every attempt opens the file again.

    Raises:
        BlockingIOError: Another process holds the lock; `strerror` is its PID.
    """
    holder = "unknown"
    for _ in range(attempts):
        file = open(path, "a+")  # noqa: SIM115 - open as long as the lock is held
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_nlink:
                return file
        except BlockingIOError:
            file.seek(0)
            holder = file.read(20).strip() or "unknown"
        except OSError:
            file.close()
            raise
        file.close()
        time.sleep(0.03)
    raise BlockingIOError(errno.EAGAIN, holder)


def is_held(folder: Path) -> bool:
    """Return whether a process on any machine with this storage holds the lock."""
    try:
        with open(folder / LOCK) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no lock file, or no support for locks, which training reports
        return False
    return False
