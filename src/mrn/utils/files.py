"""Atomic writes, checksums, and reads of regular files with a size limit."""

import contextlib
import errno
import hashlib
import json
import os
import secrets
import stat
import tempfile
from collections.abc import Sequence
from io import BufferedReader, UnsupportedOperation
from pathlib import Path
from typing import IO, Any, cast

from mrn.utils.errors import RunError, UserError


class UnreadableError(UserError):
    """A file exists but is temporarily unreadable; it may be intact."""

    def __init__(self, path: Path, reason: object) -> None:
        """Initialize the error with the path and the operating system's reason."""
        super().__init__(f"cannot read {path}: {reason}")
        self.path = path


MAX_BYTES = 64 * 2**20
"""Default size limit of untrusted files; larger ones are rejected."""
TEMP_SUFFIX = ".new"
"""End of the names of temporary files."""


def checksum(content: bytes) -> str:
    """Return the SHA-256 hash in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that readers and crashes see either the old or the new content.

    Several processes may write the same file at once: the last one wins.

    Raises:
        RunError: The disk is full or the folder is not writable. The message states whether the
            file has the old or the new content.
    """
    new = path.with_name(f".{path.name[:50]}.{secrets.token_hex(8)}{TEMP_SUFFIX}")
    try:
        with open(new, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise RunError(
            f"cannot write {path}: {error.strerror}; the previous content is untouched"
        ) from error
    try:
        sync_folder(path.parent)
    except OSError as error:
        raise RunError(
            f"wrote {path}, but cannot flush its folder to disk: {error.strerror}; a power failure "
            "may restore the previous content"
        ) from error


def as_path(name: str, value: Any) -> Path:
    """Return a path that a user gave.

    Raises:
        UserError: The value is not a path; `name` identifies it.
    """
    if not isinstance(value, str | os.PathLike) or "\0" in str(value):
        raise UserError(f"{name} must be a path, got {value!r}")
    return Path(value)


def make_writable_folder(path: Path, remedy: str = "choose another folder") -> None:
    """Create a folder with its parents if needed, and check that it is writable.

    Raises:
        UserError: The path or a parent is a file, or the folder is not writable.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        file = next((part for part in (path, *path.parents) if part.is_file()), None)
        reason = f"{file} is a file" if file else error.strerror
        raise UserError(f"cannot write to {path}: {reason}; {remedy}") from None


def is_inside(path: Path, folder: Path) -> bool:
    """Return whether a path is inside a folder after following all links."""
    target, outer = os.path.realpath(path), os.path.realpath(folder)
    return os.path.commonpath([target, outer]) == outer


def prepare_output_file(path: Path, suffixes: Sequence[str], force: bool) -> None:
    """Check that a file can be written, and create its folder.

    Call it before expensive work, so that a wrong path fails early.

    Raises:
        UserError: The suffix is wrong, the file exists and `force` is False, or the folder is not
            writable.
    """
    if path.suffix.lower() not in suffixes:
        raise UserError(f"the file name must end with {' or '.join(suffixes)}, got {path}")
    if path.is_dir():
        raise UserError(f"{path} is a folder; pass a file name")
    if path.exists() and not force:
        raise UserError(f"{path} already exists; use force to overwrite it")
    make_writable_folder(path.parent)


def is_temp_file(path: Path) -> bool:
    """Return whether a killed process left this file behind in `write_atomically`."""
    return path.name.startswith(".") and path.name.endswith(TEMP_SUFFIX) and path.is_file()


def sync_folder(path: Path) -> None:
    """Flush a folder to disk, so that a rename in it survives a power failure."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def open_regular(path: Path, limit: int = MAX_BYTES) -> BufferedReader:
    """Open an untrusted file, which may be a FIFO or a link to a device, without blocking.

    Raises:
        UserError: The file is missing, unreadable, not a regular file, or larger than `limit`.
    """
    try:
        file = _open_nonblocking(path, "rb")
    except OSError as error:
        raise read_error(path, error) from None
    if os.fstat(file.fileno()).st_size <= limit:
        return cast("BufferedReader", file)
    file.close()
    raise UserError(f"{path} is too large: at most {limit // 2**20:,} MiB are allowed")


def open_own(path: Path, mode: str) -> IO[bytes]:
    """Open a file of this package for writing, with `mode` as in `open`. Links are not followed.

    Raises:
        OSError: It cannot be written.
        UserError: It is a link, or not a regular file.
    """
    return _open_nonblocking(path, mode, getattr(os, "O_NOFOLLOW", 0))


def _open_nonblocking(path: Path, mode: str, more_flags: int = 0) -> IO[bytes]:
    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | more_flags | getattr(os, "O_NONBLOCK", 0), 0o666)

    try:
        file: IO[bytes] = open(path, mode, opener=opener)  # noqa: SIM115 - closed by the caller
    except OSError as error:
        no_seek = isinstance(error, UnsupportedOperation)
        if no_seek or error.errno in (errno.ELOOP, errno.ENXIO):  # a link, a socket or a FIFO
            raise _not_regular(path) from None
        raise
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise _not_regular(path)


def _not_regular(path: Path) -> UserError:
    return UserError(f"{path} is not a regular file; remove it")


def read_limited(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Return the content of an untrusted file.

    Raises:
        UserError: The file is missing, unreadable, not a regular file, or larger than `limit`.
    """
    try:
        with open_regular(path, limit) as file:
            return file.read(limit)  # the file may grow
    except OSError as error:
        raise read_error(path, error) from None


def read_error(path: Path, error: OSError) -> UserError:
    """Return the error for a failed read: `UnreadableError` if the file exists."""
    reason = error.strerror or error
    no_file = isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError)
    if no_file or os.path.isdir(path):
        return UserError(f"cannot read {path}: {reason}")
    return UnreadableError(path, reason)


def parse_json(text: str | bytes, where: str) -> Any:
    """Parse untrusted JSON; `where` names it in the error message.

    Raises:
        UserError: The text is not valid JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where} is damaged: {error}") from None
