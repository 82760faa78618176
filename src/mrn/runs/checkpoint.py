"""All that a run needs to go on as if it had never stopped, in files that cannot run code.

A checkpoint is a folder named after its position (epoch, cycles done in it):

    checkpoints/000004-000000/   state.safetensors   networks, optimiser, normaliser, generators
                                 checkpoint.json     counters, metrics, names and sums of all files
                                 complete            the checksum of checkpoint.json
    checkpoints/replay-*.safetensors                 the replay's rows, in pieces

It is written aside and renamed when whole. The replay is written once: each checkpoint adds the
rows that are new and names the pieces that still matter. The last two checkpoints are kept.

Of a run of many processes each writes its part, the others what differs from the leader's:
state-RANK.safetensors and replay-RANK-*.safetensors. The leader completes the checkpoint.
"""

import json
import os
import shutil
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mrn.config import Config
from mrn.distributed import Ranks
from mrn.runs.layout import CHECKPOINTS, checkpoint_folders
from mrn.runs.metrics import COLUMNS, Row, check_rows
from mrn.runs.rank_state import (
    Part,
    Piece,
    check_sum,
    piece_name,
    read_part,
    read_tensors,
    state_name,
    tensor_bytes,
)
from mrn.runs.run_dir import check_settings
from mrn.training.clock import Clock
from mrn.training.trainer import Trainer
from mrn.utils.errors import DIVERGED_HINT, RunError, UserError
from mrn.utils.files import (
    UnreadableError,
    checksum,
    parse_json,
    read_limited,
    sync_folder,
    write_atomically,
)
from mrn.utils.validation import Validated, from_dict

FORMAT = 1
KEPT = 2


@dataclass(frozen=True)
class Manifest(Validated):
    """What checkpoint.json says, apart from the configuration, the metrics and the parts."""

    format: int
    epoch: int
    cycle: int
    env_steps: int
    updates: int
    best: float
    clock: Clock = field(default_factory=Clock)  # a checkpoint of before there was one has none


class Saved(NamedTuple):
    """A checkpoint that was read and found whole."""

    path: Path
    manifest: Manifest
    config: Config
    metrics: list[Row]
    parts: list[Part]
    state: dict[str, Tensor]


class Checkpoints:
    """The checkpoints of a run."""

    def __init__(self, run: Path) -> None:
        """Look into a run's folder, which need not exist yet."""
        self.run, self.folder = run, run / CHECKPOINTS
        self.pieces: list[Piece] = []  # of this process, in the last checkpoint
        self.named: set[str] = set()  # of all processes

    def save(self, trainer: Trainer, metrics: Sequence[Row]) -> None:
        """Write a checkpoint, then remove those before the last two; all processes do it together.

        Raises:
            RunError: It cannot be written, or holds a number that is not finite, or the processes
                do not agree. Earlier ones are as they were.
        """
        ranks, tensors = trainer.ranks, trainer.tensors()
        for name, value in tensors.items():
            if not torch.isfinite(value).all():
                told = f"not a finite number in {name} at the end of a cycle; not saved"
                raise RunError(f"{told}; {DIVERGED_HINT}", resumable=False)
        kept = {k: v for k, v in tensors.items() if ranks.is_main or trainer.is_own(k)}
        final = self.folder / f"{trainer.epoch:06d}-{trainer.cycle:06d}"
        aside = self.folder / ".new"
        try:
            if ranks.is_main:
                self.folder.mkdir(exist_ok=True)
                shutil.rmtree(aside, ignore_errors=True)
                aside.mkdir()
            ranks.barrier()
            pieces, state = self._save_replay(trainer), tensor_bytes(kept)
            write_atomically(aside / state_name(ranks.rank), state)
            parts = _gather(_part(checksum(state), trainer, pieces), trainer)
            if ranks.is_main:
                about = {
                    "format": FORMAT,
                    **parts[0],
                    **trainer.counters(),
                    "metrics": list(metrics),
                }
                about |= {"config": trainer.config.to_dict(), "others": parts[1:]}
                text = json.dumps(about, indent=1, default=asdict).encode()
                write_atomically(aside / "checkpoint.json", text)
                write_atomically(aside / "complete", checksum(text).encode())
                shutil.rmtree(final, ignore_errors=True)
                os.replace(aside, final)
                sync_folder(self.folder)
            ranks.barrier()  # no process ends before all is whole
        except OSError as error:
            raise RunError(
                f"cannot write a checkpoint to {self.folder}: {error.strerror}; earlier ones are "
                "untouched"
            ) from error
        before, self.pieces = self.named, pieces
        self.named = {piece["name"] for part in parts for piece in part["pieces"]}
        if ranks.is_main:
            self._remove_old(before)

    def load(self, trainer: Trainer) -> list[Row] | None:
        """Bring a fresh trainer to where the newest whole checkpoint left off.

        Returns:
            The metrics so far; None if there is no checkpoint, and nothing was changed.

        Raises:
            UserError: No checkpoint is whole, or it belongs to other settings.
        """
        ranks, columns = trainer.ranks, {*COLUMNS, *trainer.metrics}
        saved, problems = self._newest(columns, ranks) if ranks.is_main else (None, [])
        (name, *_) = ranks.all_gather_text(saved.path.name if saved else "")  # the leader's choice
        if not name:
            return None
        saved = saved or self._verify(self.folder / name, columns, ranks, [ranks.rank])
        part, replay = saved.parts[ranks.rank], trainer.replay
        check_settings(saved.config, trainer.config, str(saved.path))
        trainer.restore(saved.state, {k: getattr(saved.manifest, k) for k in trainer.counters()})
        replay.start_at(part.oldest_row, part.first_transition)
        for piece in part.pieces:
            skip = max(part.oldest_row - piece.start, 0)
            rows = read_tensors(self.folder / piece.name)
            replay.check(rows, piece.end - piece.start, str(self.folder / piece.name))
            replay.append({name: value[skip:] for name, value in rows.items()})
        self.pieces = list(part.pieces)
        self.named = {piece.name for each in saved.parts for piece in each.pieces}
        if problems:
            warnings.warn(f"{problems[0][1]}; going on from {name}", stacklevel=2)
            for damaged, _ in problems:
                shutil.rmtree(damaged, ignore_errors=True)
        return saved.metrics

    def _newest(
        self, columns: set[str], ranks: Ranks
    ) -> tuple[Saved | None, list[tuple[Path, UserError]]]:
        """The newest checkpoint that is whole, if there is any, and what is wrong with later ones.

        Raises:
            UserError: There are some, and none is whole.
        """
        problems: list[tuple[Path, UserError]] = []
        for path in reversed(checkpoint_folders(self.run)):
            try:
                return self._verify(path, columns, ranks, range(ranks.size)), problems
            except UnreadableError as error:  # it may be whole, and is the newest
                remedy = f"remove {path} to go on from the checkpoint before it"
                if error.path.parent != path:
                    remedy = "the run is lost: all checkpoints need this part of the replay"
                raise UserError(f"{error}; nothing was changed. If it stays so, {remedy}") from None
            except UserError as error:
                problems.append((path, error))
        if problems:
            raise UserError(
                f"no checkpoint in {self.folder} is whole: {problems[0][1]}. Remove the run "
                "folder to start again"
            )
        return None, []

    def _save_replay(self, trainer: Trainer) -> list[Piece]:
        """Write the rows that no piece holds yet; the pieces that hold the replay now."""
        replay = trainer.replay
        needed = [piece for piece in self.pieces if piece.end > replay.oldest]
        start = max(replay.oldest, needed[-1].end if needed else 0)
        if start < replay.written:
            content = tensor_bytes(replay.read(start))
            name = piece_name(start, trainer.ranks.rank)
            write_atomically(self.folder / name, content)
            needed.append(Piece(name, start, replay.written, checksum(content)))
        return needed

    def _verify(self, path: Path, columns: set[str], ranks: Ranks, needed: Iterable[int]) -> Saved:
        """Read a checkpoint; an error if anything of these processes is not as it was written."""
        text = read_limited(path / "checkpoint.json")
        if checksum(text).encode() != read_limited(path / "complete"):
            raise UserError(f"{path} is damaged: checkpoint.json is not what was written")
        about = parse_json(text, str(path / "checkpoint.json"))
        if not isinstance(about, dict) or about.get("format") != FORMAT:
            raise UserError(f"{path} is not a checkpoint of format {FORMAT}")
        config, metrics = about.pop("config", None), about.pop("metrics", None)
        others = about.pop("others", [])  # a checkpoint of before there were any has none
        if not isinstance(others, list):
            raise UserError(f"{path}: the parts of the other processes are not a list")
        first = {item.name: about.pop(item.name) for item in fields(Part) if item.name in about}
        parts = [read_part(each, rank, path) for rank, each in enumerate([first, *others])]
        if len(parts) != ranks.size:
            raise UserError(f"{path} is of {len(parts)} processes, not of {ranks.size}")
        names = [state_name(rank) for rank in range(ranks.size)]
        files = [(path / names[rank], parts[rank].state_sha256) for rank in {0, *needed}]
        for piece in (piece for rank in needed for piece in parts[rank].pieces):
            files.append((self.folder / piece.name, piece.sha256))
        for file, expected in files:
            check_sum(file, expected)
        state = read_tensors(path / names[0])
        if not ranks.is_main:
            state |= read_tensors(path / names[ranks.rank])
        return Saved(
            path,
            from_dict(Manifest, about, str(path)),
            Config.from_json(config, str(path)),
            check_rows(metrics, columns, str(path)),
            parts,
            state,
        )

    def _remove_old(self, before: set[str]) -> None:
        """Remove checkpoints before the last two, and pieces that neither of these names."""
        for path in checkpoint_folders(self.run)[:-KEPT]:
            shutil.rmtree(path, ignore_errors=True)
        for file in self.folder.glob("replay-*.safetensors"):
            if file.name not in before | self.named:
                file.unlink(missing_ok=True)


def _part(state_sha256: str, trainer: Trainer, pieces: list[Piece]) -> Part:
    replay = trainer.replay
    return Part(state_sha256, replay.oldest, replay.written, replay.first, tuple(pieces))


def _gather(part: Part, trainer: Trainer) -> list[dict[str, Any]]:
    """The parts of all processes, by rank, once all have written theirs.

    Raises:
        RunError: Their weights are no longer the same.
    """
    said = trainer.ranks.all_gather_text(
        json.dumps({"shared": trainer.fingerprint(), **asdict(part)})
    )
    parts = [json.loads(text) for text in said]
    if len({each.pop("shared") for each in parts}) > 1:
        raise RunError(
            "the weights of the processes are no longer the same; not saved. Do all machines have "
            "the same processors and the same versions of all packages?",
            resumable=False,
        )
    return parts
