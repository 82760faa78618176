"""Exclusive lock on a run folder."""

import errno
import os
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import IO, Any

from mrn.runs.layout import LOCK
from mrn.runs.open_folder import OpenFolder
from mrn.utils.errors import RunError, UserError
from mrn.utils.files import open_own, open_regular

fcntl: Any
try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None

_NO_LOCKS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS)
"""Error codes of `flock` on storage without file locks, such as some network file systems."""
_NO_FOLDER_LOCKS = (*_NO_LOCKS, errno.EBADF, errno.EINVAL, errno.EISDIR)
"""Error codes of `flock` on storage that locks files but not folders."""


class LockedError(UserError):
    """Another process holds the lock."""


class RunLock:
    """Exclusive lock of this process on a run folder.

    Both the folder and the file `.lock` in it are locked. The lock on the folder remains if someone
    removes the file, but other machines on a network file system see only the lock on the file,
    which also contains the PID.

    The lock belongs to the open files, so the operating system releases it when the process exits
    for any reason.
    """

    def __init__(self, folder: Path) -> None:
        """Acquire the lock.

        Raises:
            LockedError: Another process holds the lock.
            UserError: The system or the storage does not support locks, or `.lock` is a link
                or not a regular file.
            OSError: The folder is not writable.
        """
        if fcntl is None:
            raise UserError(
                "training needs the file locks of Linux or macOS, which keep two processes from "
                "writing to the same run: on Windows, train in WSL. Policies can be loaded and "
                "evaluated here"
            )
        self._path = folder / LOCK
        try:
            self._folder, self._file = _open_locked(folder)
        except BlockingIOError:
            raise LockedError(
                f"another process (PID {_holder(self._path)}) is training in {folder}; wait for "
                "it, stop it, or choose another run_dir"
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
        self._file.write(f"{os.getpid()}\n".encode())
        self._file.flush()

    def check(self) -> None:
        """Check that this process still owns the folder; call it before every write.

        Raises:
            RunError: The folder was removed or replaced, or another machine took over the run.
        """
        self._folder.check()
        if os.path.lexists(self._path) and not self._owns_file():
            raise RunError(
                f"another process has taken over {self._path.parent} after {LOCK} was removed; "
                "this one stops and writes nothing more",
                resumable=False,
            )

    def _owns_file(self) -> bool:
        try:
            return os.path.samestat(os.lstat(self._path), os.fstat(self._file.fileno()))
        except OSError:  # removed by hand
            return False

    def close(self) -> None:
        """Release the lock. Files of a folder that replaced this one remain."""
        with suppress(OSError):  # the next process takes over a file that remains
            if self._folder.is_current() and self._owns_file():
                self._path.unlink()
        self._file.close()
        self._folder.close()


def _open_locked(folder: Path, attempts: int = 10) -> tuple[OpenFolder, IO[bytes]]:
    """Open and lock a folder and the file in it.

    Retry, because `is_held` takes the lock for a moment. A holder that exits removes its file, and
    a lock on a removed file or folder has no effect, so every attempt opens both again.

    Raises:
        BlockingIOError: Another process holds the lock.
    """
    for _ in range(attempts):
        with ExitStack() as stack:
            opened = stack.enter_context(closing(OpenFolder(folder)))
            try:
                _lock_folder(opened.descriptor)
                file = stack.enter_context(open_own(folder / LOCK, "ab"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                links = os.fstat(file.fileno()).st_nlink
                if links > 1:  # writing the PID would change another file
                    raise UserError(f"{folder / LOCK} is a hard link to another file; remove it")
                if links and opened.is_current():
                    stack.pop_all()
                    return opened, file
            except BlockingIOError:
                pass
        time.sleep(0.03)
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def _lock_folder(descriptor: int) -> None:
    """Lock a folder if the storage supports it; the lock on the file is always needed."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NO_FOLDER_LOCKS:
            raise


def _holder(path: Path) -> str:
    """Return the PID in a lock file."""
    try:
        with open_regular(path) as file:
            return file.read(20).decode(errors="replace").strip() or "unknown"
    except (UserError, OSError):
        return "unknown"


def is_held(folder: Path) -> bool:
    """Return whether a process on any machine with this storage holds the lock."""
    if fcntl is None:
        return False
    return _is_locked(folder, os.O_DIRECTORY) or _is_locked(folder / LOCK, os.O_NOFOLLOW)


def _is_locked(path: Path, flags: int) -> bool:
    try:
        descriptor = os.open(path, flags | os.O_RDONLY | os.O_NONBLOCK)
    except OSError:  # not started yet
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no support for locks, which training reports
        return False
    finally:
        os.close(descriptor)
    return False
