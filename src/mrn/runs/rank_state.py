"""What one process of a run has in a checkpoint: its state, and the pieces of its replay."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from mrn.utils.errors import UserError
from mrn.utils.files import read_error
from mrn.utils.renames import upgrade_tensors
from mrn.utils.validation import Validated, from_dict


@dataclass(frozen=True)
class Piece(Validated):
    """A file of the replay's rows start .. end - 1, counted since the run began."""

    name: str
    start: int
    end: int
    sha256: str


@dataclass(frozen=True)
class Part(Validated):
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
        raise read_error(file, error) from None
    if found != expected:
        raise UserError(f"{file} is damaged: its checksum is not what was written")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file of unknown origin.

    Raises:
        UserError: It is missing or damaged.
    """
    try:
        return upgrade_tensors(safetensors.torch.load_file(path))
    except OSError as error:
        raise read_error(path, error) from None
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise UserError(f"{path} is damaged: {error}") from None


def tensor_bytes(tensors: Mapping[str, Tensor], about: dict[str, str] | None = None) -> bytes:
    """A safetensors file, with what it says about them.

    Networks may share parts with each other. In a file each name has numbers of its own.
    """
    values: dict[str, Tensor] = {}
    places: set[int] = set()
    for name, value in tensors.items():
        value = value.cpu().contiguous()
        place = value.untyped_storage().data_ptr()
        values[name] = value.clone() if place in places else value
        places.add(place)
    return safetensors.torch.save(values, about)
