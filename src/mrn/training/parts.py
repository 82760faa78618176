"""What one process of a run has in a checkpoint: its state, and the pieces of its replay."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from mrn.checked import Checked, from_dict
from mrn.errors import UserError


@dataclass(frozen=True)
class Piece(Checked):
    """A file of the replay's rows start .. end - 1, counted since the run began."""

    name: str
    start: int
    end: int
    sha256: str


@dataclass(frozen=True)
class Part(Checked):
    """What one process of the run has in a checkpoint."""

    state_sha256: str
    oldest_row: int
    written_rows: int
    first_transition: int
    pieces: tuple[Piece, ...]


def piece_name(start: int, rank: int) -> str:
    """The file of a process's rows from `start` on."""
    return f"replay-{f'{rank}-' if rank else ''}{start:012d}.safetensors"


def state_name(rank: int) -> str:
    """The file of a process's state."""
    return f"state{f'-{rank}' if rank else ''}.safetensors"


def read_part(data: Any, rank: int, path: Path) -> Part:
    """A process's part, of unknown origin: its pieces hold all rows and have names of ours.

    Raises:
        UserError: They do not; `path` names the checkpoint.
    """
    part: Part = from_dict(Part, data, str(path))
    for piece in part.pieces:
        if piece.name != piece_name(piece.start, rank):
            raise UserError(f"{path}: {piece.name!r} is no name of a piece")
    starts = [piece.start for piece in part.pieces] + [part.written_rows]
    ends = [part.oldest_row] + [piece.end for piece in part.pieces]
    if starts[0] > ends[0] or starts[1:] != ends[1:]:
        raise UserError(f"{path}: the pieces of the replay are not all of it")
    return part


def check_sum(file: Path, expected: str) -> None:
    """Refuse a file that is not as it was written.

    Raises:
        UserError: It is missing, or another one.
    """
    try:
        with open(file, "rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    if found != expected:
        raise UserError(f"{file} is damaged: its checksum is not what was written")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file of unknown origin.

    Raises:
        UserError: It is missing or damaged.
    """
    try:
        return safetensors.torch.load_file(path)
    except (safetensors.SafetensorError, OSError, ValueError, KeyError) as error:
        raise UserError(f"{path} is damaged: {error}") from None
