"""Checkpoints: everything a run needs to resume bit-identically, in files that cannot run code.

A checkpoint is a folder named after its position, the epoch and its completed cycles:

    checkpoints/000004-000000/   state.safetensors   networks, optimizer, normalizer, generators
                                 checkpoint.json     counters, metrics, names and checksums of files
                                 complete            checksum of checkpoint.json
    checkpoints/replay-*.safetensors                 rows of the replay buffer, in pieces
    checkpoints/copy-replay-*.safetensors            the same again

A checkpoint is written to a temporary folder and renamed when complete. It adds the new rows of the
replay buffer and lists the pieces that are still needed. The last two checkpoints are kept. They
share most pieces, so each piece is stored twice.

With several ranks, each writes its share. Ranks other than 0 write what differs from rank 0:
state-RANK.safetensors and replay-RANK-*.safetensors. Rank 0 completes the checkpoint.
"""

import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
from torch import Tensor

from mrn.config import Config
from mrn.runs.clock import Clock
from mrn.runs.layout import CHECKPOINTS, checkpoint_folders
from mrn.runs.metrics import COLUMNS, Row, check_rows
from mrn.runs.rank_state import (
    RankState,
    ReplayPiece,
    parse_rank_state,
    piece_name,
    read_tensors,
    state_name,
    tensor_bytes,
    verify_checksum,
)
from mrn.runs.replay_files import PATTERN, find_damaged, original_name, restore, write_twice
from mrn.runs.run_dir import check_settings
from mrn.runs.training_state import TrainingState
from mrn.utils.errors import DIVERGED_HINT, RunError, UserError
from mrn.utils.files import (
    MAX_BYTES,
    UnreadableError,
    checksum,
    parse_json,
    read_limited,
    sync_folder,
    write_atomically,
)
from mrn.utils.validation import Bounds, NonNegativeInt, PositiveInt, Validated, from_dict

FORMAT = 1
MAX_CHECKPOINTS = 2


@dataclass(frozen=True)
class Manifest(Validated):
    """Content of checkpoint.json, without the configuration, the metrics and the rank states."""

    format: int
    epoch: PositiveInt
    cycle: NonNegativeInt
    env_steps: NonNegativeInt
    updates: NonNegativeInt
    best: Annotated[float, Bounds(ge=-1, le=1)]
    clock: Clock = field(default_factory=Clock)  # missing in checkpoints of early versions


class LoadedCheckpoint(NamedTuple):
    """A checkpoint that was read and verified."""

    path: Path
    manifest: Manifest
    config: Config
    metrics: list[Row]
    rank_states: list[RankState]
    tensors: dict[str, Tensor]
    damaged: dict[Path, UserError]
    """Replay files to restore from their copies, and vice versa."""


class Checkpoints:
    """Reader and writer of a run's checkpoints."""

    def __init__(self, run: Path, check: Callable[[], None] = lambda: None) -> None:
        """Use the checkpoints in a run folder.

        Args:
            run: The run folder, which need not exist yet.
            check: Function called before every write, which raises if another run took the folder.
        """
        self.run, self.folder, self.check = run, run / CHECKPOINTS, check
        self.pieces: list[ReplayPiece] = []  # of this rank, in the last checkpoint
        self.piece_names: set[str] = set()  # of all ranks, in the last checkpoint

    def save(self, state: TrainingState, metrics: Sequence[Row]) -> None:
        """Write a checkpoint, then remove all but the last two. All ranks must call it.

        Raises:
            RunError: Writing failed, a number is not finite, or the ranks have diverged. Earlier
                checkpoints remain valid.
        """
        ranks, tensors = state.ranks, state.tensors()
        for name, value in tensors.items():
            if not torch.isfinite(value).all():
                message = f"{name} contains a non-finite number at the end of a cycle; not saved"
                raise RunError(f"{message}; {DIVERGED_HINT}", resumable=False)
        written = {k: v for k, v in tensors.items() if ranks.is_main or state.is_rank_local(k)}
        final = self.folder / f"{state.epoch:06d}-{state.cycle:06d}"
        temporary = self.folder / ".new"
        self.check()
        try:
            if ranks.is_main:
                self.folder.mkdir(exist_ok=True)
                shutil.rmtree(temporary, ignore_errors=True)
                temporary.mkdir()
            ranks.barrier()
            pieces, content = self._save_replay(state), tensor_bytes(written)
            self.check()
            write_atomically(temporary / state_name(ranks.rank), content)
            rank_states = _gather_rank_states(state, checksum(content), pieces)
            self.check()
            if ranks.is_main:
                _write_manifest(temporary, state, rank_states, metrics)
                shutil.rmtree(final, ignore_errors=True)
                os.replace(temporary, final)
                sync_folder(self.folder)
            ranks.barrier()  # no rank may exit before the checkpoint is complete
        except OSError as error:
            raise RunError(
                f"cannot write a checkpoint to {self.folder}: {error.strerror}; earlier "
                "checkpoints are untouched"
            ) from error
        previous, self.pieces = self.piece_names, pieces
        self.piece_names = {piece["name"] for each in rank_states for piece in each["pieces"]}
        if ranks.is_main:
            self._remove_old(previous)

    def load(self, state: TrainingState) -> list[Row] | None:
        """Restore the newest valid checkpoint.

        Returns:
            The metrics of the run so far, or None without a checkpoint.

        Raises:
            UserError: No checkpoint is valid, or it was written with other settings.
        """
        ranks = state.ranks
        loaded, problems = self._newest(state) if ranks.is_main else (None, [])
        (name, *_) = ranks.all_gather_text(loaded.path.name if loaded else "")  # rank 0 decides
        if not name:
            return None
        loaded = loaded or self._verify(self.folder / name, state, [ranks.rank])
        own, replay = loaded.rank_states[ranks.rank], state.replay
        check_settings(loaded.config, state.config, str(loaded.path))
        state.restore(loaded.tensors, {k: getattr(loaded.manifest, k) for k in state.counters()})
        restore(loaded.damaged, replay.nbytes + MAX_BYTES)
        replay.start_at(own.oldest_row, own.first_transition)
        for piece in own.pieces:
            skip = max(own.oldest_row - piece.start, 0)
            rows = read_tensors(self.folder / piece.name)
            replay.check(rows, piece.end - piece.start, skip, str(self.folder / piece.name))
            replay.append({name: value[skip:] for name, value in rows.items()})
        self.pieces = list(own.pieces)
        self.piece_names = {piece.name for each in loaded.rank_states for piece in each.pieces}
        if problems:
            warnings.warn(f"{problems[0][1]}; resuming from {name}", stacklevel=2)
            for damaged, _ in problems:
                shutil.rmtree(damaged, ignore_errors=True)
        return loaded.metrics

    def _newest(
        self, state: TrainingState
    ) -> tuple[LoadedCheckpoint | None, list[tuple[Path, UserError]]]:
        """Return the newest valid checkpoint, if any, and the problems of newer ones.

        Raises:
            UserError: There are checkpoints, but none is valid.
        """
        problems: list[tuple[Path, UserError]] = []
        for path in reversed(checkpoint_folders(self.run)):
            try:
                return self._verify(path, state, range(state.ranks.size)), problems
            except UnreadableError as error:  # possibly valid, so do not skip it
                remedy = f"remove {path} to resume from the previous checkpoint"
                if error.path.parent != path:
                    remedy = "the run is lost: all checkpoints need this replay file"
                raise UserError(
                    f"{error}; nothing was changed. If the error persists, {remedy}"
                ) from None
            except UserError as error:
                problems.append((path, error))
        if problems:
            raise UserError(
                f"no checkpoint in {self.folder} is valid: {problems[0][1]}. Remove the run folder "
                "to start over"
            )
        return None, []

    def _save_replay(self, state: TrainingState) -> list[ReplayPiece]:
        """Write the rows added since the last checkpoint; return all pieces still needed."""
        replay = state.replay
        needed = [piece for piece in self.pieces if piece.end > replay.oldest]
        start = max(replay.oldest, needed[-1].end if needed else 0)
        if start < replay.written:
            content = tensor_bytes(replay.read(start))
            name = piece_name(start, state.ranks.rank)
            self.check()
            write_twice(self.folder / name, content)
            needed.append(ReplayPiece(name, start, replay.written, checksum(content)))
        return needed

    def _verify(self, path: Path, state: TrainingState, needed: Iterable[int]) -> LoadedCheckpoint:
        """Read a checkpoint and verify all files of the needed ranks."""
        ranks, columns = state.ranks, {*COLUMNS, *state.metrics}
        text = read_limited(path / "checkpoint.json")
        if checksum(text).encode() != read_limited(path / "complete"):
            raise UserError(f"{path} is damaged: the checksum of checkpoint.json does not match")
        about = parse_json(text, str(path / "checkpoint.json"))
        if not isinstance(about, dict) or about.get("format") != FORMAT:
            raise UserError(f"{path} is not a checkpoint of format {FORMAT}")
        config, metrics = about.pop("config", None), about.pop("metrics", None)
        others = about.pop("others", [])  # missing in checkpoints of early versions
        if not isinstance(others, list):
            raise UserError(f"{path}: the states of the other ranks are not a list")
        names = [item.name for item in fields(RankState)]
        main = {name: about.pop(name) for name in names if name in about}
        states = [parse_rank_state(each, rank, path) for rank, each in enumerate([main, *others])]
        if len(states) != ranks.size:
            raise UserError(f"{path} was written by {len(states)} processes, not {ranks.size}")
        state_files = [path / state_name(rank) for rank in range(ranks.size)]
        limit = sum(value.nbytes for value in state.tensors().values()) + MAX_BYTES
        for rank in {0, *needed}:
            verify_checksum(state_files[rank], states[rank].state_sha256, limit)
        pieces = [piece for rank in needed for piece in states[rank].pieces]
        damaged = find_damaged(self.folder, pieces, state.replay.nbytes + MAX_BYTES)
        tensors = read_tensors(state_files[0])
        if not ranks.is_main:
            tensors |= read_tensors(state_files[ranks.rank])
        return LoadedCheckpoint(
            path,
            from_dict(Manifest, about, str(path)),
            Config.from_json(config, str(path)),
            check_rows(metrics, columns, str(path)),
            states,
            tensors,
            damaged,
        )

    def _remove_old(self, previous: set[str]) -> None:
        """Remove old checkpoints, and the pieces that no remaining checkpoint lists."""
        self.check()
        for path in checkpoint_folders(self.run)[:-MAX_CHECKPOINTS]:
            shutil.rmtree(path, ignore_errors=True)
        for file in self.folder.glob(PATTERN):
            if original_name(file) not in previous | self.piece_names:
                file.unlink(missing_ok=True)


def _write_manifest(
    folder: Path, state: TrainingState, rank_states: list[dict[str, Any]], metrics: Sequence[Row]
) -> None:
    """Write checkpoint.json, then the checksum that marks the checkpoint as complete."""
    main, *others = rank_states
    about = {"format": FORMAT, **main, **state.counters(), "metrics": list(metrics)}
    about |= {"config": state.config.to_dict(), "others": others}
    text = json.dumps(about, indent=1, default=asdict).encode()
    write_atomically(folder / "checkpoint.json", text)
    write_atomically(folder / "complete", checksum(text).encode())


def _gather_rank_states(
    state: TrainingState, state_sha256: str, pieces: list[ReplayPiece]
) -> list[dict[str, Any]]:
    """Return the entries of all ranks once all have written their files.

    Raises:
        RunError: The ranks no longer have the same weights.
    """
    replay = state.replay
    own = RankState(state_sha256, replay.oldest, replay.written, replay.first, tuple(pieces))
    entry = json.dumps({"shared": state.fingerprint(), **asdict(own)})
    entries = [json.loads(text) for text in state.ranks.all_gather_text(entry)]
    if len({each.pop("shared") for each in entries}) > 1:
        raise RunError(
            "the processes no longer have the same weights; not saved. Check that all machines "
            "have the same processors and package versions",
            resumable=False,
        )
    return entries
