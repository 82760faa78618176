"""Policy files: one safetensors file with configuration, tensors and a checksum of both."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import torch
from torch import Tensor

from mrn.runs.rank_state import check_finite, tensor_bytes
from mrn.utils.errors import UserError
from mrn.utils.files import checksum, open_regular, parse_json, write_atomically
from mrn.utils.renames import upgrade_tensors
from mrn.utils.validation import Fraction, NonNegativeInt, PositiveInt, Validated

_READ_ERRORS = (
    safetensors.SafetensorError,
    KeyError,
    TypeError,
    ValueError,
    OSError,
    AttributeError,
)
"""Errors that a damaged or foreign file can raise."""
MAX_POLICY_BYTES = 4 * 2**30
"""Size limit of a policy; one with hidden_dim 4096 takes 1 GiB."""


@dataclass(frozen=True)
class Selection(Validated):
    """How the best epoch was chosen: by the highest success rate of all evaluations so far.

    The maximum of noisy evaluations is biased upward. Evaluate the policy again before quoting it.
    """

    epoch: PositiveInt
    success: Fraction | None
    """Success rate of the evaluation; None without evaluations."""
    eval_episodes: NonNegativeInt


def write_policy(path: Path, about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write a policy. Equal policies give identical files."""
    text = json.dumps(about)
    values = {name: value.cpu() for name, value in tensors.items()}
    metadata = {"mrn": text, "sha256": fingerprint(text, values)}
    write_atomically(path, _with_sorted_header(tensor_bytes(values, metadata)))


def read_policy(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the configuration and the tensors of a policy, without executing code.

    Raises:
        UserError: The file is missing, damaged or not a policy, or a number is not finite.
    """
    with _opened(path) as file:
        metadata = file.metadata() or {}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata["sha256"] != fingerprint(metadata["mrn"], tensors):
            raise UserError(f"{path} is damaged: its checksum does not match")
        check_finite(tensors, path)
        return dict(parse_json(metadata["mrn"], str(path))), upgrade_tensors(tensors)


def read_about(path: Path) -> dict[str, Any]:
    """Return the configuration of a policy without verifying the checksum, which takes longer.

    Raises:
        UserError: The file is missing or not a policy.
    """
    with _opened(path) as file:
        return dict(parse_json((file.metadata() or {})["mrn"], str(path)))


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open an untrusted policy; errors in the block mean that it is none."""
    try:
        with (
            open_regular(path, MAX_POLICY_BYTES),
            safetensors.safe_open(path, framework="pt") as file,
        ):
            yield file
    except FileNotFoundError:
        raise UserError(f"file {path} does not exist") from None
    except _READ_ERRORS as error:
        raise UserError(f"{path} is not a policy saved by mrn: {error}") from None


def fingerprint(about: str, tensors: Mapping[str, Tensor]) -> str:
    """Return the checksum of a policy's configuration and tensors."""
    parts = [about.encode()]
    for name in sorted(tensors):
        value = tensors[name]
        parts += [f"{name} {value.dtype} {tuple(value.shape)}".encode(), value.numpy().tobytes()]
    return checksum(b"\n".join(parts))


def check_tensors(own: Mapping[str, Tensor], loaded: Mapping[str, Tensor], where: str) -> None:
    """Check that loaded tensors have the names, shapes and types of an agent's own.

    Raises:
        UserError: They differ; `where` names their source.
    """

    def layout(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
        return {name: (tuple(value.shape), value.dtype) for name, value in tensors.items()}

    if different := dict(layout(own).items() ^ layout(loaded).items()):
        raise UserError(f"{where} does not fit this agent: {sorted(different)[0]!r} differs")


def compress_policy(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the networks in half precision, without the target networks.

    Target networks are close to their networks. The normalizer is small and keeps its precision:
    rounding would shift network inputs by up to 0.02 standard deviations. So do tensors with a
    value beyond the range of half precision, which would become infinite.
    """
    kept = {name: value for name, value in tensors.items() if _online_name(name) not in tensors}
    return {
        name: _halve(value) if name.startswith("algorithm.") else value
        for name, value in kept.items()
    }


def _halve(value: Tensor) -> Tensor:
    """Return a float32 tensor in half precision if all its values are in range."""
    if value.dtype != torch.float32:
        return value
    half = value.half()
    return half if torch.equal(half.isfinite(), value.isfinite()) else value


def expand_policy(tensors: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Undo `compress_policy`: return single precision, with copies of networks as targets."""
    full = {n: v.float() if v.dtype == torch.float16 else v for n, v in tensors.items()}
    copies = {name: full[_online_name(name)] for name in own if _online_name(name) in full}
    return copies | full


def _online_name(name: str) -> str:
    """Return the name of the online tensor of a target, or "" for other tensors.

    Algorithms name the target network of `NAME` `NAME_target`.
    """
    part, module, *rest = name.split(".")
    network = module.removesuffix("_target")
    return ".".join([part, network, *rest]) if network != module else ""


def _with_sorted_header(content: bytes) -> bytes:
    """Sort the metadata of a safetensors file, so that equal policies give identical files.

    The library writes the metadata in random order. A safetensors file starts with the length of
    its header in 8 bytes, followed by the header as JSON.
    """
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors start at a multiple of 8
    return len(text).to_bytes(8, "little") + text + content[8 + size :]
