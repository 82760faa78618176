"""Files with implausible content and valid checksums, as an attacker could write them."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor

from mrn.runs.policy_file import fingerprint, read_policy, write_policy
from mrn.runs.rank_state import tensor_bytes
from mrn.utils.files import checksum
from tests.reliability.hostile.damages import VALUES, Target, substitute

Forgery = Callable[[Target], None]


def seal(checkpoint: Path) -> None:
    """Update the checksum of a manifest."""
    (checkpoint / "complete").write_text(checksum((checkpoint / "checkpoint.json").read_bytes()))


def forge_manifest(values: list[str]) -> Forgery:
    """Put one of the values into both checkpoint.json, at the same place."""

    def forge(target: Target) -> None:
        seed = target.rng.random()
        for file in target.sandbox.victim.glob("checkpoints/*/checkpoint.json"):
            target._replace(file=file, rng=random.Random(seed)).replace(substitute(values))
            seal(file.parent)

    return forge


def forge_settings(values: list[str]) -> Forgery:
    """Put one of the values into the settings of a policy."""

    def forge(target: Target) -> None:
        about, tensors = read_policy(target.file)
        content = substitute(values)(bytearray(json.dumps(about).encode()), target.rng)
        text = bytes(content).decode()
        metadata = {"mrn": text, "sha256": fingerprint(text, tensors)}
        target.file.write_bytes(tensor_bytes(tensors, metadata))

    return forge


SPOILED = ("nan", "inf", "shape", "type", "extra", "missing")


def spoil(tensors: dict[str, Tensor], rng: random.Random, how: str) -> dict[str, Tensor]:
    """Return tensors of which one is not valid."""
    # Sorted, because safetensors returns another order each time.
    name = rng.choice(sorted(k for k, value in tensors.items() if value.is_floating_point()))
    value = tensors[name].clone()
    if how in ("nan", "inf"):
        value.view(-1)[rng.randrange(value.numel())] = float(how)
    changed = {
        "shape": {name: value.reshape(-1)[:-1].clone()},
        "type": {name: value.half()},
        "extra": {"extra": value},
        "missing": {},
    }
    kept = {key: other for key, other in tensors.items() if how == "extra" or key != name}
    return kept | changed.get(how, {name: value})


def forge_weights(how: str) -> Forgery:
    """Spoil a tensor of a policy."""

    def forge(target: Target) -> None:
        about, tensors = read_policy(target.file)
        write_policy(target.file, about, spoil(tensors, target.rng, how))

    return forge


def forge_state(how: str) -> Forgery:
    """Spoil the same tensor of both checkpoints, or the states of all random generators."""

    def forge(target: Target) -> None:
        seed = target.rng.random()
        for file in target.sandbox.victim.glob("checkpoints/*/state.safetensors"):
            tensors = safetensors.torch.load(file.read_bytes())
            if how == "generators":
                names = [name for name in tensors if name.startswith("generator")]
                tensors |= {name: torch.zeros_like(tensors[name]) for name in names}
            else:
                tensors = spoil(tensors, random.Random(seed), how)
            file.write_bytes(content := safetensors.torch.save(tensors))
            manifest = file.parent / "checkpoint.json"
            about = json.loads(manifest.read_text()) | {"state_sha256": checksum(content)}
            manifest.write_text(json.dumps(about))
            seal(file.parent)

    return forge


MANIFEST = {f"forged-{name}": forge_manifest(values) for name, values in VALUES.items()}
POLICY = {f"forged-{name}": forge_settings(values) for name, values in VALUES.items()}
POLICY |= {f"spoiled-{how}": forge_weights(how) for how in SPOILED}
STATE = {f"spoiled-{how}": forge_state(how) for how in (*SPOILED, "generators")}
