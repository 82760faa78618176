"""Precision of a run's updates."""

import warnings

import torch

from mrn.algorithms import AlgorithmSettings
from mrn.config import Config
from mrn.distributed import Ranks
from mrn.utils.device import has_bfloat16
from mrn.utils.precision import Precision


def resolve_precision(config: Config, device: torch.device, ranks: Ranks) -> Precision:
    """Return `float32` or `bfloat16`, the same on all ranks.

    Both `auto` and `bfloat16` are bfloat16 if the devices of all ranks have instructions for it,
    and float32 otherwise. Emulation would be slower than float32. Only `bfloat16` then warns.
    """
    assert isinstance(config.algo_config, AlgorithmSettings)
    precision = config.algo_config.precision
    if precision == "float32":
        return "float32"
    if not ranks.all_reduce_max(not has_bfloat16(device)):
        return "bfloat16"
    if precision == "bfloat16" and ranks.is_main:
        warnings.warn(
            "precision is bfloat16, but the processor or GPU has no instructions for it; updates "
            "compute in float32 instead",
            stacklevel=2,
        )
    return "float32"
