"""Damaged and forged weights files are rejected, without allocating memory."""

import random
import re
import struct
from pathlib import Path

import pytest

import mrn
from mrn.runs.policy_file import read_policy, write_policy
from tests.training.helpers import tiny_run


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "run"
    tiny_run(folder, epochs=3, critic="monolithic", hidden_dim=4)
    return folder


def test_damaged_weights_are_never_loaded(run, tmp_path, count):
    whole = (run / "latest.safetensors").read_bytes()
    file, rng, rejected = tmp_path / "weights.safetensors", random.Random(1), 0
    while rejected < 300:
        file.write_bytes(whole)
        if not _damage_bytes(file, rng):
            continue
        with pytest.raises(mrn.UserError):
            mrn.load(file)
        rejected += 1
    count(f"damaged weights: {rejected}, all rejected")


def _damage_bytes(file: Path, rng: random.Random) -> bool:
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


@pytest.mark.parametrize("length", [2**62, 2**40, 99 * 2**20])
def test_huge_header_is_rejected(tmp_path, length):
    file = tmp_path / "weights.safetensors"
    file.write_bytes(struct.pack("<Q", length) + b'{"a":' + b" " * 100)
    with pytest.raises(mrn.UserError, match="not a policy"):
        mrn.load(file)


def forge_weights(run: Path, forged: Path, change) -> None:
    """Change the metadata of a policy file and update its checksum, as an attacker could."""
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
def test_weights_with_a_forged_task_are_rejected(run, tmp_path, what):
    changes, message = FORGED_TASKS[what]
    forged = tmp_path / "forged.safetensors"
    forge_weights(run, forged, lambda about: about["task"].update(changes))
    with pytest.raises(mrn.UserError, match=f"forged.safetensors.*{message}"):
        mrn.load(forged)


def test_policy_of_another_size_is_rejected(run, tmp_path):
    """The weights fit the metadata of the file, but not the environment."""
    forged = tmp_path / "forged.safetensors"
    forge_weights(run, forged, lambda about: about["task"].update(env_id="HandReach-v3"))
    for engine in ("envpool", "gymnasium"):
        with pytest.raises(mrn.UserError, match="observation had 10 values, now has 63; goal"):
            mrn.load(forged).evaluate(1, engine=engine)


def test_forged_sizes_allocate_no_memory(run, tmp_path):
    """A file that claims larger networks than it has is rejected before they are allocated."""
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # reset the peak memory
    before = peak_memory()
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
    assert peak_memory() - before < 200_000  # KiB; networks of that size would need more


def peak_memory() -> int:
    """Return the peak memory of this process in KiB."""
    return int(
        re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))[1]
    )
