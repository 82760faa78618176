"""Damaged and malicious files are rejected without running code and without a traceback."""

import errno
import hashlib
import json
import pickle
import random
import re
import shutil
import warnings
from dataclasses import astuple
from pathlib import Path

import pytest
import safetensors.torch
import torch

import mrn
from mrn.envs import find_task
from mrn.replay import ReplayBuffer
from mrn.runs.checkpoint import Checkpoints
from mrn.runs.provenance import read_config
from mrn.runs.rank_state import read_tensors
from mrn.training.trainer import Trainer
from mrn.utils.files import UnreadableError, checksum
from tests.training.helpers import tiny_run

TRIALS = 1000


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "run"
    tiny_run(folder, epochs=3, critic="monolithic", hidden_dim=4)
    return folder


def restored_trainer(folder: Path) -> Trainer:
    """Return a trainer restored from the newest checkpoint of a run folder."""
    trainer = Trainer(read_config(folder), find_task("FetchReach", 0.0), torch.device("cpu"))
    assert Checkpoints(folder).load(trainer) is not None
    return trainer


def overwrite(trainer: Trainer) -> None:
    """Overwrite everything that a checkpoint restores."""
    with torch.no_grad():
        for value in trainer.tensors().values():
            value.fill_(7)
    for generator in trainer.generators.values():
        generator.manual_seed(7)
    for name in trainer.counters():
        setattr(trainer, name, 7)
    capacity = trainer.config.replay.buffer_size
    trainer.replay = ReplayBuffer(trainer.agent.spec, capacity, torch.device("cpu"))


def content(trainer: Trainer) -> list[torch.Tensor]:
    """Return everything that a checkpoint restores."""
    rows = trainer.replay.read(trainer.replay.oldest)
    counters = trainer.counters()
    numbers = [*astuple(counters.pop("clock")), *counters.values()]
    counters = torch.tensor(numbers, dtype=torch.float64)
    return [value.clone() for value in (counters, *trainer.tensors().values(), *rows.values())]


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return len(one) == len(other) and all(
        torch.equal(a, b) for a, b in zip(one, other, strict=True)
    )


def damage(files: list[Path], rng: random.Random) -> str:
    """Damage one file, or swap two; return how, or "" if the bytes did not change."""
    files = [file for file in files if file.exists() and file.stat().st_size]
    file = rng.choice(files)
    before = bytearray(file.read_bytes())
    after = bytearray(before)
    kind = rng.choice(["truncated", "flipped", "zeroed", "swapped", "removed"])
    if kind == "truncated":
        del after[rng.randrange(len(after)) :]
    elif kind == "flipped":
        for _ in range(rng.randint(1, 8)):
            after[rng.randrange(len(after))] ^= 1 << rng.randrange(8)
    elif kind == "zeroed":
        start = rng.randrange(len(after))
        end = min(len(after), start + rng.randint(1, 4096))
        after[start:end] = bytes(end - start)
    elif kind == "swapped":
        other = rng.choice([each for each in files if each.read_bytes() != before])
        after = bytearray(other.read_bytes())
        other.write_bytes(before)
    if kind == "removed":
        file.unlink()
    elif after == before:
        return ""
    else:
        file.write_bytes(after)
    return kind


def test_damaged_checkpoints_are_never_loaded(run, tmp_path, count):
    trainer = restored_trainer(run)
    newest = content(trainer)
    positions = sorted(path for path in (run / "checkpoints").iterdir() if path.is_dir())
    assert len(positions) == 2
    older = tmp_path / "older"
    shutil.copytree(run, older)
    shutil.rmtree(older / "checkpoints" / positions[1].name)
    genuine = [newest, content(restored_trainer(older))]
    assert not same(*genuine)

    rng, outcomes = random.Random(0), {"previous": 0, "restored": 0, "rejected": 0}
    trial = tmp_path / "trial"
    for _ in range(TRIALS):
        kind = ""
        while not kind:
            shutil.rmtree(trial, ignore_errors=True)
            shutil.copytree(run, trial)
            # Half of the time damage another file, too: then perhaps nothing is left to load.
            files = sorted(f for f in (trial / "checkpoints").rglob("*") if f.is_file())
            kind = damage([f for f in files if positions[0].name not in f.parts], rng)
            if rng.random() < 0.5:
                damage(files, rng)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            overwrite(trainer)  # reuse the trainer: building one takes longer than everything else
            checkpoints = Checkpoints(trial)
            try:
                assert checkpoints.load(trainer) is not None
                state = content(trainer)
            except mrn.UserError:
                outcomes["rejected"] += 1
                continue
        # The previous checkpoint, or the newest with damaged replay files restored.
        outcome = "previous" if same(state, genuine[1]) else "restored"
        assert outcome == "previous" or same(state, genuine[0]), kind
        texts = [str(each.message) for each in warned]
        others = [text for text in texts if "restored from its copy" not in text]
        assert len(others) == (outcome == "previous"), texts
        for name in checkpoints.piece_names:
            for file in (name, f"copy-{name}"):
                expected = (run / "checkpoints" / name).read_bytes()
                assert (trial / "checkpoints" / file).read_bytes() == expected
        outcomes[outcome] += 1
    assert sum(outcomes.values()) == TRIALS
    assert min(outcomes.values()) > 50
    count(f"damaged checkpoints: {TRIALS}, {outcomes}; none was accepted")


def test_no_single_damaged_file_loses_a_run(run, tmp_path, count):
    """The promise of docs/reliability.md, for each file in turn."""
    trainer = restored_trainer(run)
    names = [p.relative_to(run) for p in (run / "checkpoints").rglob("*") if p.is_file()]
    assert len(names) >= 10  # 3 files in each of two checkpoints, and at least 2 pieces twice
    for name in names:
        for change in (Path.unlink, lambda file: file.write_bytes(b"\0" * 100)):
            folder = tmp_path / "run"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(run, folder)
            change(folder / name)
            overwrite(trainer)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert Checkpoints(folder).load(trainer) is not None
            assert trainer.epoch == (3 if name.parts[1] == "000004-000000" else 4)
    count(f"files of two checkpoints damaged in turn: {len(names)}; the run resumed each time")


def test_unreadable_file_is_not_treated_as_damaged(run, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    before = sorted((folder / "checkpoints").rglob("*"))

    digest, trainer = hashlib.file_digest, restored_trainer(folder)
    newest = folder / "checkpoints" / "000004-000000"
    for name, remedy in (
        ("state.safetensors", f"remove {newest} to resume from the previous checkpoint"),
        ("replay-", "the run is lost: all checkpoints need this replay file"),
    ):

        def fails(file, kind, _name=name):
            if _name in file.name:
                raise OSError(errno.EIO, "Input/output error")
            return digest(file, kind)

        with monkeypatch.context() as context:
            context.setattr("hashlib.file_digest", fails)
            with pytest.raises(mrn.UserError, match="output error; nothing was changed") as error:
                Checkpoints(folder).load(trainer)
        assert str(error.value).endswith(f"If the error persists, {remedy}")
        assert sorted((folder / "checkpoints").rglob("*")) == before
    assert restored_trainer(folder).epoch == 4
    with pytest.raises(mrn.UserError, match="cannot read .*none: No such file") as error:
        read_tensors(folder / "none")
    assert not isinstance(error.value, UnreadableError)


class Canary:
    """Object whose pickle runs code when it is restored_trainer."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def forge(folder: Path, change) -> None:
    """Change checkpoint.json and update its checksum, as an attacker could."""
    for position in (p for p in (folder / "checkpoints").iterdir() if p.is_dir()):
        about = json.loads((position / "checkpoint.json").read_text())
        text = change(about)
        if not isinstance(text, bytes):
            text = json.dumps(about).encode()
        (position / "checkpoint.json").write_bytes(text)
        (position / "complete").write_text(checksum(text))


FORGERIES = {
    "a name that leaves the folder": lambda about: about["pieces"][0].update(
        name="../../elsewhere.safetensors"
    ),
    "a list for a number": lambda about: about.update(epoch=[1]),
    "a string for a number": lambda about: about.update(updates="12"),
    "pieces that are not a list": lambda about: about.update(pieces={"name": 1}),
    "pieces with a gap": lambda about: about["pieces"].pop(1),
    "an oldest row within an episode": lambda about: about.update(
        oldest_row=about["oldest_row"] + 1
    ),
    "an oldest row beyond the last": lambda about: about.update(oldest_row=2**62),
    "more transitions than rows": lambda about: about.update(first_transition=2**31),
    "metrics of other columns": lambda about: about["metrics"][0].update(evil=1),
    "a metric that is text": lambda about: about["metrics"][0].update(success="=cmd()"),
    "an unknown field": lambda about: about.update(code="import os"),
    "a configuration that is null": lambda about: about.update(config=None),
    "another format": lambda about: about.update(format=99),
    "not an object": lambda about: b"[1, 2, 3]",
    "deep nesting": lambda about: b"[" * 100_000 + b"]" * 100_000,
    "not JSON": lambda about: b"\x80\x04cos\nsystem\n.",
}


def test_numbers_that_are_not_finite_are_rejected(run, tmp_path):
    """Each tensor in turn; some, such as a mean, are computed again before the next save."""
    shutil.copytree(run, tmp_path / "run")
    states = list((tmp_path / "run").glob("checkpoints/*/state.safetensors"))
    newest = max(states)
    tensors = safetensors.torch.load(newest.read_bytes())
    for name in sorted(k for k, value in tensors.items() if value.is_floating_point()):
        spoiled = tensors[name].clone()
        spoiled.view(-1)[0] = torch.inf
        for state in states:
            content = safetensors.torch.save(tensors | {name: spoiled})
            state.write_bytes(content)
        forge(tmp_path / "run", lambda about: about.update(state_sha256=checksum(content)))  # noqa: B023
        with pytest.raises(mrn.UserError, match=f"{re.escape(name)} contains a non-finite number"):
            restored_trainer(tmp_path / "run")


@pytest.mark.parametrize("what", FORGERIES)
def test_forged_checkpoints_are_rejected(run, tmp_path, what):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    before = {p for p in tmp_path.rglob("*") if "run" not in p.parts}
    forge(folder, FORGERIES[what])
    with pytest.raises(mrn.UserError):
        restored_trainer(folder)
    assert {p for p in tmp_path.rglob("*") if "run" not in p.parts} == before


@pytest.mark.parametrize("kind", ["relative", "absolute"])
def test_replay_files_outside_the_run_folder_are_rejected(run, tmp_path, kind):
    folder, copy = tmp_path / "run", tmp_path / "elsewhere.safetensors"
    shutil.copytree(run, folder)
    piece = sorted((folder / "checkpoints").glob("replay-*"))[0]
    shutil.copy(piece, copy)  # an exact copy, so that its checksum is correct
    name = str(copy) if kind == "absolute" else "../../elsewhere.safetensors"
    forge(folder, lambda about: about["pieces"][0].update(name=name))
    with pytest.raises(mrn.UserError, match="is not the name of a replay file"):
        restored_trainer(folder)


@pytest.mark.parametrize("where", ["latest.safetensors", "state.safetensors"])
def test_pickle_with_our_file_name_is_not_executed(run, tmp_path, where, count):
    folder, canary = tmp_path / "run", tmp_path / "canary"
    shutil.copytree(run, folder)
    payload = pickle.dumps(Canary(canary))
    files = list(folder.rglob(where))
    for file in files:
        file.write_bytes(payload)
    forge(folder, lambda about: about.update(state_sha256=checksum(payload)))
    with pytest.raises(mrn.UserError):
        mrn.load(folder) if where.startswith("latest") else restored_trainer(folder)
    assert not canary.exists()
    # Control: unpickling does run the code.
    pickle.loads(payload)
    assert canary.exists()
    count(f"a pickle named {where}: rejected, its code did not run")


def test_changed_setting_in_config_json_is_rejected(run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    about = json.loads((folder / "config.json").read_text())
    about["config"]["algo_config"]["discount"] = 0.97
    (folder / "config.json").write_text(json.dumps(about))
    with pytest.raises(mrn.UserError, match="discount was 0.98, now 0.97"):
        restored_trainer(folder)
