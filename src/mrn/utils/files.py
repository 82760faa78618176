"""Files that are whole or absent: atomic writes, checksums, and bounded, verified reads."""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrn.utils.errors import RunError, UserError


class UnreadableError(UserError):
    """A file that is there and cannot be read now: not damaged, as far as is known."""

    def __init__(self, path: Path, reason: object) -> None:
        """Say which, and what the system says."""
        super().__init__(f"cannot read {path}: {reason}")
        self.path = path


MAX_TEXT_BYTES = 64 * 2**20
"""More than any text file of ours holds; a larger one is not read."""


def checksum(content: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file so that a reader, or a crash, finds the old one or the new one, whole.

    Raises:
        RunError: The disk is full or the folder is not writable; the old file is as it was.
    """
    new = temp_path(path)
    try:
        with open(new, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        raise RunError(
            f"cannot write {path}: {error.strerror}; what was there before is untouched"
        ) from error


def make_writable_folder(path: Path, remedy: str = "choose another place") -> None:
    """Make a folder and those above it, unless it is there, and make sure it can be written to.

    Raises:
        UserError: A file is in the way, or the place is not writable; says which and the remedy.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        file = next((part for part in (path, *path.parents) if part.is_file()), None)
        why = f"{file} is a file" if file else error.strerror
        raise UserError(f"cannot write to {path}: {why}; {remedy}") from None


def prepare_output_file(path: Path, endings: Sequence[str], force: bool) -> None:
    """Make sure, before the work for it, that a file can be written; its folder is made.

    Raises:
        UserError: Its name does not end as it must, it is there and is not to be replaced, or the
            place is not writable.
    """
    if path.suffix.lower() not in endings:
        raise UserError(f"the name of the file must end with {' or '.join(endings)}, got {path}")
    if path.is_dir():
        raise UserError(f"{path} is a folder; name a file")
    if path.exists() and not force:
        raise UserError(f"{path} exists already; --force replaces it")
    make_writable_folder(path.parent)


def temp_path(path: Path) -> Path:
    """Where the new content of a file is written before it takes its place."""
    return path.with_name(f".{path.name}.new")


def sync_folder(path: Path) -> None:
    """Make sure that a rename in a folder survives a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_limited(path: Path) -> bytes:
    """Content of a file of unknown origin.

    Raises:
        UserError: It is missing, or too large to be one of ours.
    """
    try:
        if path.stat().st_size > MAX_TEXT_BYTES:
            raise UserError(f"{path} is too large to be one of ours")
        return path.read_bytes()
    except OSError as error:
        raise read_error(path, error) from None


def read_error(path: Path, error: OSError) -> UserError:
    """The error for a file that could not be read: `UnreadableError` unless there is none."""
    reason = error.strerror or error
    absent = isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError)
    if absent or os.path.isdir(path):
        return UserError(f"cannot read {path}: {reason}")
    return UnreadableError(path, reason)


def parse_json(text: str | bytes, where: str) -> Any:
    """Data of JSON text of unknown origin; `where` names it in the error."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where} is damaged: {error}") from None
