"""All that a run needs to go on as if it had never stopped, in files that cannot run code.

A checkpoint is a folder named after its position (epoch, cycles done in it):

    checkpoints/000004-000000/   state.safetensors   networks, optimiser, normaliser, generators
                                 checkpoint.json     counters, metrics, names and sums of all files
                                 complete            the checksum of checkpoint.json
    checkpoints/replay-*.safetensors                 the replay's rows, in pieces

It is written aside and renamed when whole. The replay is written once: each checkpoint adds the
rows that are new and names the pieces that still matter. The last two checkpoints are kept.
"""

import hashlib
import json
import os
import shutil
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from mrn.checked import Checked, from_dict
from mrn.config import Config
from mrn.errors import RunError, UserError
from mrn.files import checksum, parse_json, read_bounded, sync_folder, write_atomically
from mrn.training.layout import CHECKPOINTS, checkpoint_folders
from mrn.training.metrics import COLUMNS, Row, check_rows
from mrn.training.rundir import check_settings
from mrn.training.trainer import Trainer

FORMAT = 1
KEPT = 2


@dataclass(frozen=True)
class Piece(Checked):
    """A file of the replay's rows start .. end - 1, counted since the run began."""

    name: str
    start: int
    end: int
    sha256: str


@dataclass(frozen=True)
class Manifest(Checked):
    """What checkpoint.json says, apart from the configuration, the metrics and the pieces."""

    format: int
    state_sha256: str
    oldest_row: int
    written_rows: int
    first_transition: int
    epoch: int
    cycle: int
    env_steps: int
    updates: int
    best: float


class Saved(NamedTuple):
    """A checkpoint that was read and found whole."""

    manifest: Manifest
    config: Config
    metrics: list[Row]
    pieces: list[Piece]
    state: dict[str, Tensor]


class Checkpoints:
    """The checkpoints of a run."""

    def __init__(self, run: Path) -> None:
        """Look into a run's folder, which need not exist yet."""
        self.run, self.folder = run, run / CHECKPOINTS
        self.pieces: list[Piece] = []

    def save(self, trainer: Trainer, metrics: list[Row]) -> None:
        """Write a checkpoint, then remove those before the last two.

        Raises:
            RunError: It cannot be written, or holds a number that is not finite. Earlier ones are
                as they were.
        """
        tensors = trainer.tensors()
        for name, value in tensors.items():
            if not torch.isfinite(value).all():
                raise RunError(f"not a finite number in {name} at the end of a cycle; not saved")
        state = safetensors.torch.save({name: value.cpu() for name, value in tensors.items()})
        final = self.folder / f"{trainer.epoch:06d}-{trainer.cycle:06d}"
        aside = self.folder / ".new"
        try:
            self.folder.mkdir(exist_ok=True)
            pieces = self._save_replay(trainer)
            manifest = Manifest(
                format=FORMAT,
                state_sha256=checksum(state),
                oldest_row=trainer.replay.oldest,
                written_rows=trainer.replay.written,
                first_transition=trainer.replay.first,
                **trainer.counters(),
            )
            about = asdict(manifest) | {
                "config": trainer.config.to_dict(),
                "metrics": metrics,
                "pieces": [asdict(piece) for piece in pieces],
            }
            text = json.dumps(about, indent=1).encode()
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir()
            write_atomically(aside / "state.safetensors", state)
            write_atomically(aside / "checkpoint.json", text)
            write_atomically(aside / "complete", checksum(text).encode())
            shutil.rmtree(final, ignore_errors=True)
            os.replace(aside, final)
            sync_folder(self.folder)
        except OSError as error:
            raise RunError(
                f"cannot write a checkpoint to {self.folder}: {error.strerror}; earlier ones are "
                "untouched"
            ) from error
        before, self.pieces = self.pieces, pieces
        self._remove_old(before)

    def load(self, trainer: Trainer) -> list[Row] | None:
        """Bring a fresh trainer to where the newest whole checkpoint left off.

        Returns:
            The metrics so far; None if there is no checkpoint, and nothing was changed.

        Raises:
            UserError: No checkpoint is whole, or it belongs to other settings.
        """
        saved, problems = None, []
        for path in reversed(checkpoint_folders(self.run)):
            try:
                saved = self._verify(path, {*COLUMNS, *trainer.metrics})
                break
            except UserError as error:
                problems.append((path, error))
        if saved is None:
            if problems:
                raise UserError(
                    f"no checkpoint in {self.folder} is whole: {problems[0][1]}. Remove the run "
                    "folder to start again"
                )
            return None
        manifest, replay = saved.manifest, trainer.replay
        check_settings(saved.config, trainer.config, str(path))
        trainer.restore(saved.state, {k: getattr(manifest, k) for k in trainer.counters()})
        replay.start_at(manifest.oldest_row, manifest.first_transition)
        for piece in saved.pieces:
            skip = max(manifest.oldest_row - piece.start, 0)
            rows = _tensors(self.folder / piece.name)
            replay.check(rows, piece.end - piece.start, str(self.folder / piece.name))
            replay.append({name: value[skip:] for name, value in rows.items()})
        self.pieces = saved.pieces
        if problems:
            warnings.warn(f"{problems[0][1]}; going on from {path.name}", stacklevel=2)
            for damaged, _ in problems:
                shutil.rmtree(damaged, ignore_errors=True)
        return saved.metrics

    def _save_replay(self, trainer: Trainer) -> list[Piece]:
        """Write the rows that no piece holds yet; the pieces that hold the replay now."""
        replay = trainer.replay
        needed = [piece for piece in self.pieces if piece.end > replay.oldest]
        start = max(replay.oldest, needed[-1].end if needed else 0)
        if start < replay.written:
            content = safetensors.torch.save(replay.read(start))
            piece = Piece(_piece_name(start), start, replay.written, checksum(content))
            write_atomically(self.folder / piece.name, content)
            needed.append(piece)
        return needed

    def _verify(self, path: Path, columns: set[str]) -> Saved:
        """Read a checkpoint; an error if anything is not as it was written."""
        text = read_bounded(path / "checkpoint.json")
        if checksum(text).encode() != read_bounded(path / "complete"):
            raise UserError(f"{path} is damaged: checkpoint.json is not what was written")
        about = parse_json(text, str(path / "checkpoint.json"))
        if not isinstance(about, dict) or about.get("format") != FORMAT:
            raise UserError(f"{path} is not a checkpoint of format {FORMAT}")
        config, metrics, pieces = (about.pop(k, None) for k in ("config", "metrics", "pieces"))
        manifest = from_dict(Manifest, about, str(path))
        pieces = _check_pieces(pieces, manifest, path)
        files = [(path / "state.safetensors", manifest.state_sha256)]
        files += [(self.folder / piece.name, piece.sha256) for piece in pieces]
        for file, expected in files:
            _check_sum(file, expected)
        return Saved(
            manifest,
            Config.from_json(config, str(path)),
            check_rows(metrics, columns, str(path)),
            pieces,
            _tensors(path / "state.safetensors"),
        )

    def _remove_old(self, before: list[Piece]) -> None:
        """Remove checkpoints before the last two, and pieces that neither of these names."""
        for path in checkpoint_folders(self.run)[:-KEPT]:
            shutil.rmtree(path, ignore_errors=True)
        needed = {piece.name for piece in (*before, *self.pieces)}
        for file in self.folder.glob("replay-*.safetensors"):
            if file.name not in needed:
                file.unlink(missing_ok=True)


def _piece_name(start: int) -> str:
    return f"replay-{start:012d}.safetensors"


def _check_pieces(pieces: Any, manifest: Manifest, path: Path) -> list[Piece]:
    """Pieces that hold all rows without a gap, and have names of ours."""
    if not isinstance(pieces, list):
        raise UserError(f"{path}: the pieces of the replay are not a list")
    checked = [from_dict(Piece, piece, str(path)) for piece in pieces]
    for piece in checked:
        if piece.name != _piece_name(piece.start):
            raise UserError(f"{path}: {piece.name!r} is no name of a piece")
    starts = [piece.start for piece in checked] + [manifest.written_rows]
    ends = [manifest.oldest_row] + [piece.end for piece in checked]
    if starts[0] > ends[0] or starts[1:] != ends[1:]:
        raise UserError(f"{path}: the pieces of the replay are not all of it")
    return checked


def _check_sum(file: Path, expected: str) -> None:
    try:
        with open(file, "rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    if found != expected:
        raise UserError(f"{file} is damaged: its checksum is not what was written")


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load_file(path)
    except (safetensors.SafetensorError, OSError, ValueError, KeyError) as error:
        raise UserError(f"{path} is damaged: {error}") from None
