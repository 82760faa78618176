"""A policy as one safetensors file: what it is, all its numbers, and a checksum of both."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import torch
from torch import Tensor

from mrn.runs.rank_state import tensor_bytes
from mrn.utils.errors import UserError
from mrn.utils.files import checksum, parse_json, write_atomically
from mrn.utils.renames import upgrade_tensors

_DAMAGE = (safetensors.SafetensorError, KeyError, TypeError, ValueError, OSError, AttributeError)
"""What reading a damaged or foreign file can raise."""


def write_policy(path: Path, about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write a policy; the same one is the same file, byte for byte."""
    text = json.dumps(about)
    values = {name: value.cpu() for name, value in tensors.items()}
    metadata = {"mrn": text, "sha256": fingerprint(text, values)}
    write_atomically(path, _with_sorted_header(tensor_bytes(values, metadata)))


def read_policy(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What a policy is, and its numbers; nothing in the file is executed.

    Raises:
        UserError: The file is missing, damaged or not one of ours.
    """
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata["sha256"] != fingerprint(metadata["mrn"], tensors):
            raise UserError(f"{path} is damaged: its checksum is not what was written")
        return dict(parse_json(metadata["mrn"], str(path))), upgrade_tensors(tensors)
    except FileNotFoundError:
        raise UserError(f"there is no file {path}") from None
    except _DAMAGE as error:
        raise UserError(f"{path} is not a policy saved by mrn: {error}") from None


def fingerprint(about: str, tensors: Mapping[str, Tensor]) -> str:
    """The checksum of a policy: of what it is and of all its numbers."""
    parts = [about.encode()]
    for name in sorted(tensors):
        value = tensors[name]
        parts += [f"{name} {value.dtype} {tuple(value.shape)}".encode(), value.numpy().tobytes()]
    return checksum(b"\n".join(parts))


def compress_policy(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Networks in half precision, without the targets, which are near their networks anyway.

    The normaliser stays as it is: rounded, it would shift what a network sees by up to 0.02
    standard deviations, and it is small.
    """
    kept = {name: value for name, value in tensors.items() if _network_of(name) not in tensors}
    halved = {name for name in kept if name.startswith("algorithm.")}
    return {
        name: value.half() if name in halved and value.dtype == torch.float32 else value
        for name, value in kept.items()
    }


def expand_policy(tensors: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What `shrink` left, completed to all tensors that an agent has: targets are as networks."""
    full = {n: v.float() if v.dtype == torch.float16 else v for n, v in tensors.items()}
    copies = {name: full[_network_of(name)] for name in own if _network_of(name) in full}
    return copies | full


def _network_of(name: str) -> str:
    """Of a target's tensor the name of its network's: algorithms call a copy of NAME NAME_target."""
    part, module, *rest = name.split(".")
    network = module.removesuffix("_target")
    return ".".join([part, network, *rest]) if network != module else ""


def _with_sorted_header(content: bytes) -> bytes:
    """The same file with its header in a fixed order: the same policy, the same bytes.

    The library writes the entries of its metadata in another order each time. A safetensors file
    begins with the length of its header, in 8 bytes, and the header, JSON.
    """
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of 8
    return len(text).to_bytes(8, "little") + text + content[8 + size :]
