"""Damaged and malicious files: none is taken for good, none runs code, none ends in a traceback."""

import errno
import hashlib
import json
import pickle
import random
import re
import shutil
import struct
import warnings
from dataclasses import astuple
from pathlib import Path

import pytest
import torch

import mrn
from mrn.envs import find_task
from mrn.replay import ReplayBuffer
from mrn.runs.checkpoint import Checkpoints
from mrn.runs.policy_file import read_policy, write_policy
from mrn.runs.provenance import read_config
from mrn.training import parts
from mrn.training.trainer import Trainer
from mrn.utils.files import UnreadableError, checksum
from tests.training.helpers import tiny_run

DAMAGED = 1000


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "run"
    tiny_run(folder, epochs=3, critic="monolithic", hidden_dim=4)
    return folder


def loaded(folder: Path) -> Trainer:
    """A trainer brought to the newest checkpoint of a run folder."""
    trainer = Trainer(read_config(folder), find_task("FetchReach", 0.0), torch.device("cpu"))
    assert Checkpoints(folder).load(trainer) is not None
    return trainer


def spoil(trainer: Trainer) -> None:
    """Forget all that a checkpoint holds."""
    with torch.no_grad():
        for value in trainer.tensors().values():
            value.fill_(7)
    for generator in trainer.generators.values():
        generator.manual_seed(7)
    for name in trainer.counters():
        setattr(trainer, name, 7)
    capacity = trainer.config.replay.capacity
    trainer.replay = ReplayBuffer(trainer.agent.spec, capacity, torch.device("cpu"))


def content(trainer: Trainer) -> list[torch.Tensor]:
    """All that a checkpoint holds."""
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
    """Damage one file, or swap two; says how, or nothing if the bytes came out the same."""
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


def test_damaged_checkpoints_are_never_taken_for_good(run, tmp_path, count):
    trainer = loaded(run)
    newest = content(trainer)
    positions = sorted(path for path in (run / "checkpoints").iterdir() if path.is_dir())
    assert len(positions) == 2
    older = tmp_path / "older"
    shutil.copytree(run, older)
    shutil.rmtree(older / "checkpoints" / positions[1].name)
    genuine = [newest, content(loaded(older))]
    assert not same(*genuine)

    rng, outcomes = random.Random(0), {"previous": 0, "unharmed": 0, "refused": 0}
    trial = tmp_path / "trial"
    for _ in range(DAMAGED):
        kind = ""
        while not kind:
            shutil.rmtree(trial, ignore_errors=True)
            shutil.copytree(run, trial)
            # Of the previous checkpoint only now and then: both at once leaves nothing to load.
            files = sorted(f for f in (trial / "checkpoints").rglob("*") if f.is_file())
            kind = damage([f for f in files if positions[0].name not in f.parts], rng)
            if rng.random() < 0.1:
                damage(files, rng)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            spoil(trainer)  # and use it again: to make another takes longer than all the rest
            try:
                assert Checkpoints(trial).load(trainer) is not None
                state = content(trainer)
            except mrn.UserError:
                outcomes["refused"] += 1
                continue
        # The previous one, whole; or the newest, if what was damaged belongs to the other alone.
        outcome = "previous" if same(state, genuine[1]) else "unharmed"
        assert outcome == "previous" or same(state, genuine[0]), kind
        assert len(warned) == (outcome == "previous")
        outcomes[outcome] += 1
    assert sum(outcomes.values()) == DAMAGED
    assert min(outcomes.values()) > 50
    count(f"damaged checkpoints: {DAMAGED}, {outcomes}; none was taken for good")


def test_a_file_that_cannot_be_read_now_is_not_taken_for_damaged(run, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    before = sorted((folder / "checkpoints").rglob("*"))

    digest, trainer = hashlib.file_digest, loaded(folder)
    newest = folder / "checkpoints" / "000004-000000"
    for name, remedy in (
        ("state.safetensors", f"remove {newest} to go on from the checkpoint before it"),
        ("replay-", "the run is lost: all checkpoints need this part of the replay"),
    ):

        def fails(file, kind, _name=name):
            if _name in file.name:
                raise OSError(errno.EIO, "Input/output error")
            return digest(file, kind)

        with monkeypatch.context() as context:
            context.setattr("hashlib.file_digest", fails)
            with pytest.raises(mrn.UserError, match="output error; nothing was changed") as error:
                Checkpoints(folder).load(trainer)
        assert str(error.value).endswith(f"If it stays so, {remedy}")
        assert sorted((folder / "checkpoints").rglob("*")) == before
    assert loaded(folder).epoch == 4
    with pytest.raises(mrn.UserError, match="cannot read .*none: No such file") as error:
        parts.read_tensors(folder / "none")
    assert not isinstance(error.value, UnreadableError)


def test_damaged_weights_are_never_taken_for_good(run, tmp_path, count):
    whole = (run / "latest.safetensors").read_bytes()
    file, rng, refused = tmp_path / "weights.safetensors", random.Random(1), 0
    while refused < 300:
        file.write_bytes(whole)
        if not _spoil(file, rng):
            continue
        with pytest.raises(mrn.UserError):
            mrn.load(file)
        refused += 1
    count(f"damaged weights: {refused}, all refused")


def _spoil(file: Path, rng: random.Random) -> bool:
    before = file.read_bytes()
    after = bytearray(before)
    if rng.random() < 0.3:
        del after[rng.randrange(len(after)) :]
    else:
        start = rng.randrange(len(after))
        size = rng.choice([1, 4, 512])
        after[start : start + size] = rng.randbytes(len(after[start : start + size]))
    file.write_bytes(after)
    return bytes(after) != before


class Canary:
    """Pickled, it runs code when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def forge(folder: Path, change) -> None:
    """Change checkpoint.json as someone would who can compute checksums."""
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
    "pieces that are no list": lambda about: about.update(pieces={"name": 1}),
    "pieces with a gap": lambda about: about["pieces"].pop(1),
    "metrics of other columns": lambda about: about["metrics"][0].update(evil=1),
    "a metric that is text": lambda about: about["metrics"][0].update(success="=cmd()"),
    "an unknown field": lambda about: about.update(code="import os"),
    "a configuration that is none": lambda about: about.update(config=None),
    "another format": lambda about: about.update(format=99),
    "no object at all": lambda about: b"[1, 2, 3]",
    "deep nesting": lambda about: b"[" * 100_000 + b"]" * 100_000,
    "no JSON": lambda about: b"\x80\x04cos\nsystem\n.",
}


@pytest.mark.parametrize("what", FORGERIES)
def test_forged_checkpoints_are_refused(run, tmp_path, what):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    before = {p for p in tmp_path.rglob("*") if "run" not in p.parts}
    forge(folder, FORGERIES[what])
    with pytest.raises(mrn.UserError):
        loaded(folder)
    assert {p for p in tmp_path.rglob("*") if "run" not in p.parts} == before


@pytest.mark.parametrize("kind", ["relative", "absolute"])
def test_pieces_are_read_from_the_runs_own_folder_alone(run, tmp_path, kind):
    folder, copy = tmp_path / "run", tmp_path / "elsewhere.safetensors"
    shutil.copytree(run, folder)
    piece = sorted((folder / "checkpoints").glob("replay-*"))[0]
    shutil.copy(piece, copy)  # the very same numbers, so that its checksum is right
    name = str(copy) if kind == "absolute" else "../../elsewhere.safetensors"
    forge(folder, lambda about: about["pieces"][0].update(name=name))
    with pytest.raises(mrn.UserError, match="is no name of a piece"):
        loaded(folder)


@pytest.mark.parametrize("where", ["latest.safetensors", "state.safetensors"])
def test_a_pickle_under_our_names_is_not_run(run, tmp_path, where, count):
    folder, canary = tmp_path / "run", tmp_path / "canary"
    shutil.copytree(run, folder)
    poison = pickle.dumps(Canary(canary))
    files = list(folder.rglob(where))
    for file in files:
        file.write_bytes(poison)
    forge(folder, lambda about: about.update(state_sha256=checksum(poison)))
    with pytest.raises(mrn.UserError):
        mrn.load(folder) if where.startswith("latest") else loaded(folder)
    assert not canary.exists()
    # The control, without which a dud would pass too: where it is unpickled, the poison works.
    pickle.loads(poison)
    assert canary.exists()
    count(f"a pickle named {where}: refused, the canary lives")


@pytest.mark.parametrize("length", [2**62, 2**40, 99 * 2**20])
def test_a_huge_header_is_refused(tmp_path, length):
    file = tmp_path / "weights.safetensors"
    file.write_bytes(struct.pack("<Q", length) + b'{"a":' + b" " * 100)
    with pytest.raises(mrn.UserError, match="not a policy"):
        mrn.load(file)


def forge_weights(run: Path, forged: Path, change) -> None:
    """Change what a policy's file says of it, as someone would who can compute checksums."""
    about, tensors = read_policy(run / "latest.safetensors")
    change(about)
    write_policy(forged, about, tensors)


FORGED_TASKS = {
    "bounds of different lengths": ({"action_high": [1.0]}, "the same number of values"),
    "no bounds": ({"action_low": [], "action_high": []}, "at least one, got 0 and 0"),
    "bounds the wrong way round": ({"action_low": [2.0] * 4}, "got 2 and 1"),
    "a bound that is text": ({"action_low": ["a"] * 4}, "action_low must be of type float"),
    "an endless episode": ({"horizon": 10**12}, "horizon must be at most 1e.07"),
    "no steps": ({"horizon": 0}, "horizon must be at least 1"),
    "a state of no values": ({"state_dim": 0}, "state_dim must be at least 1"),
    "a state too large for tensors": ({"state_dim": 2**62}, "state_dim must be at most 1e.07"),
    "a goal too large for numbers": ({"goal_dim": 10**30}, "goal_dim must be at most 1e.07"),
    "other sizes than the weights": ({"state_dim": 10**7}, "does not fit this agent"),
}


@pytest.mark.parametrize("what", FORGED_TASKS)
def test_weights_of_a_forged_task_are_refused(run, tmp_path, what):
    changes, message = FORGED_TASKS[what]
    forged = tmp_path / "forged.safetensors"
    forge_weights(run, forged, lambda about: about["task"].update(changes))
    with pytest.raises(mrn.UserError, match=f"forged.safetensors.*{message}"):
        mrn.load(forged)


def test_a_policy_of_another_size_does_not_act_in_it(run, tmp_path):
    """A file whose weights fit what it says of its task, which the environment does not."""
    forged = tmp_path / "forged.safetensors"
    forge_weights(run, forged, lambda about: about["task"].update(env_id="HandReach-v3"))
    for engine in ("envpool", "gymnasium"):
        with pytest.raises(mrn.UserError, match="observation was of 10 values, now of 63; goal"):
            mrn.load(forged).evaluate(1, engine=engine)


def test_forged_sizes_cost_no_memory(run, tmp_path):
    """A file that claims larger networks than it holds is refused before they are made."""
    Path("/proc/self/clear_refs").write_text("5")  # count the most memory anew
    before = most_memory()
    for width, message in (
        (4096, "does not fit this agent"),
        (10**5, "at most"),
        (10**15, "at most"),
    ):
        forged = tmp_path / "forged.safetensors"
        widths = {"hidden_dim": width}
        forge_weights(run, forged, lambda a, w=widths: a["config"]["algo_config"].update(w))
        with pytest.raises(mrn.UserError, match=message):
            mrn.load(forged)
    assert most_memory() - before < 200_000  # KiB; networks of width 4096 would be more


def most_memory() -> int:
    """The most that this process has had, in KiB."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])


def test_a_changed_setting_in_config_json_is_noticed(run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    about = json.loads((folder / "config.json").read_text())
    about["config"]["algo_config"]["discount"] = 0.97
    (folder / "config.json").write_text(json.dumps(about))
    with pytest.raises(mrn.UserError, match="discount was 0.98, now 0.97"):
        loaded(folder)
