"""Independent random streams derived from one seed.

Streams share no state: evaluation does not affect training, and the environments of an epoch
depend only on the seed and the epoch.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def derive_seed(seed: int, purpose: str, index: int = 0) -> int:
    """Return a 31-bit seed for one purpose, for example the environments of one epoch."""
    entropy = (seed, zlib.crc32(purpose.encode()), index)
    return int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)


def make_generator(
    seed: int, purpose: str, device: torch.device, index: int = 0
) -> torch.Generator:
    """Return a torch generator on `device` for one purpose; `index` can be the rank."""
    return torch.Generator(device).manual_seed(derive_seed(seed, purpose, index))


@contextmanager
def seeded_weights(seed: int) -> Iterator[None]:
    """Seed PyTorch's global generator to initialize networks in this block, then restore it."""
    # Weights are initialized on the CPU. Forking GPU generators would create a CUDA context each.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(derive_seed(seed, "weights"))
        yield
