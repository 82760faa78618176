"""Heads with known activations."""

import torch

from mrn.critics.heads.base import Concave


def make_identity(concave: Concave) -> None:
    with torch.no_grad():
        concave.slope.zero_()  # slopes 1
        concave.offset.fill_(100.0)
