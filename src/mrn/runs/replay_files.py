"""Replay files of a checkpoint, each stored twice, because all checkpoints share them."""

import os
import warnings
from collections.abc import Iterable
from pathlib import Path

from mrn.runs.rank_state import ReplayPiece, verify_checksum
from mrn.utils.errors import UserError
from mrn.utils.files import UnreadableError, read_limited, write_atomically

PATTERN = "*replay-*.safetensors"
"""Shell pattern of the names of replay files and their copies."""
_COPY = "copy-"
COPIES = 2
"""How often each replay file is stored."""


def original_name(file: Path) -> str:
    """Return the name of a replay file, given its path or that of its copy."""
    return file.name.removeprefix(_COPY)


def both(file: Path) -> tuple[Path, Path]:
    """Return the paths of a replay file and its copy, given either of them."""
    name = original_name(file)
    return file.with_name(name), file.with_name(_COPY + name)


def write_twice(file: Path, content: bytes) -> None:
    """Write a replay file and its copy."""
    for path in both(file):
        write_atomically(path, content)


def find_damaged(folder: Path, pieces: Iterable[ReplayPiece], limit: int) -> dict[Path, UserError]:
    """Compare replay files and their copies with their checksums; return what is wrong by path.

    Raises:
        UserError: A file and its copy are missing, damaged or larger than `limit`. It is an
            `UnreadableError` if one of them may be intact.
    """
    damaged: dict[Path, UserError] = {}
    for piece in pieces:
        problems = {}
        for path in both(folder / piece.name):
            try:
                verify_checksum(path, piece.sha256, limit)
            except UserError as error:
                problems[path] = error
        if len(problems) == 2:
            unreadable = [each for each in problems.values() if isinstance(each, UnreadableError)]
            raise [*unreadable, *problems.values()][0]
        damaged |= problems
    return damaged


def restore(damaged: dict[Path, UserError], limit: int) -> None:
    """Restore replay files from their copies and vice versa.

    Warns:
        UserWarning: A file was restored. Copies that early versions did not write do not count.

    Raises:
        RunError: The disk is full.
    """
    for path, error in damaged.items():
        file, copy = both(path)
        is_new = path == copy and not os.path.lexists(copy)
        write_atomically(path, read_limited(file if path == copy else copy, limit))
        if not is_new:
            warnings.warn(f"{error}; it was restored from its copy", stacklevel=3)
