"""Random numbers: one seed, and from it an independent stream for each purpose.

Streams do not share state, so evaluating does not change training, and an epoch's environments
depend on the seed and the epoch alone.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def derive_seed(seed: int, purpose: str, index: int = 0) -> int:
    """A seed of 31 bits for one purpose, for example the environments of one epoch."""
    entropy = (seed, zlib.crc32(purpose.encode()), index)
    return int(np.random.SeedSequence(entropy).generate_state(1)[0] >> 1)


def make_generator(
    seed: int, purpose: str, device: torch.device, index: int = 0
) -> torch.Generator:
    """A generator on the device for one purpose, for example of one process."""
    return torch.Generator(device).manual_seed(derive_seed(seed, purpose, index))


@contextmanager
def seeded_weights(seed: int) -> Iterator[None]:
    """Initial weights made in this block depend on the seed alone, and disturb no other stream."""
    # They are made on the CPU; to keep the generators of GPUs too would begin a context on each.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(derive_seed(seed, "weights"))
        yield
