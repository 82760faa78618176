"""A rank's share of a checkpoint: its tensors and the files of its replay buffer."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from mrn.utils.errors import UserError
from mrn.utils.files import open_regular, read_error
from mrn.utils.renames import upgrade_tensors
from mrn.utils.validation import Validated, from_dict


@dataclass(frozen=True)
class ReplayPiece(Validated):
    """File with replay rows `start` to `end - 1`, counted from the start of the run."""

    name: str
    start: int
    end: int
    sha256: str


@dataclass(frozen=True)
class RankState(Validated):
    """Entry of a rank in checkpoint.json."""

    state_sha256: str
    oldest_row: int
    written_rows: int
    first_transition: int
    pieces: tuple[ReplayPiece, ...]


def piece_name(start: int, rank: int) -> str:
    """Return the file name of a rank's replay rows from `start` on."""
    return f"replay-{f'{rank}-' if rank else ''}{start:012d}.safetensors"


def state_name(rank: int) -> str:
    """Return the file name of a rank's tensors."""
    return f"state{f'-{rank}' if rank else ''}.safetensors"


def parse_rank_state(data: Any, rank: int, path: Path) -> RankState:
    """Validate the untrusted entry of a rank.

    Args:
        data: The entry.
        rank: The rank.
        path: The checkpoint, for error messages.

    Raises:
        UserError: A file name is not ours, or the pieces do not cover the replay buffer.
    """
    state: RankState = from_dict(RankState, data, str(path))
    for piece in state.pieces:
        if piece.name != piece_name(piece.start, rank):
            raise UserError(f"{path}: {piece.name!r} is not the name of a replay file")
    starts = [piece.start for piece in state.pieces] + [state.written_rows]
    ends = [state.oldest_row] + [piece.end for piece in state.pieces]
    ordered = 0 <= state.first_transition <= state.oldest_row <= state.written_rows < 2**62
    if not ordered or starts[0] > ends[0] or starts[1:] != ends[1:]:
        raise UserError(f"{path}: the replay files do not cover the replay buffer")
    return state


def verify_checksum(file: Path, expected: str, limit: int) -> None:
    """Compare a file with its checksum.

    Raises:
        UserError: The file is missing, differs or is larger than `limit`.
    """
    try:
        with open_regular(file, limit) as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise read_error(file, error) from None
    if found != expected:
        raise UserError(f"{file} is damaged: its checksum does not match")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read an untrusted safetensors file.

    Raises:
        UserError: The file is missing or damaged, or a number is not finite.
    """
    try:
        tensors = safetensors.torch.load_file(path)
        check_finite(tensors, path)
        return upgrade_tensors(tensors)
    except OSError as error:
        raise read_error(path, error) from None
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise UserError(f"{path} is damaged: {error}") from None


def check_finite(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Raise a `UserError` if a tensor from a file contains a number that is not finite."""
    for name, value in tensors.items():
        if not torch.isfinite(value).all():
            raise UserError(f"{path} is damaged: {name} contains a non-finite number")


def tensor_bytes(tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """Return the content of a safetensors file.

    Networks may share tensors, but the format does not allow it, so every name gets its own copy.
    """
    values: dict[str, Tensor] = {}
    storages: set[int] = set()
    for name, value in tensors.items():
        value = value.cpu().contiguous()
        storage = value.untyped_storage().data_ptr()
        values[name] = value.clone() if storage in storages else value
        storages.add(storage)
    return safetensors.torch.save(values, metadata)
