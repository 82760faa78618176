"""Building blocks of heads."""

import math

import pytest
import torch

from mrn.critics.heads.base import Concave, MaxMean


def test_concave_by_hand():
    concave = Concave(features=1, pieces=2)
    with torch.no_grad():
        concave.slope.copy_(torch.tensor([[math.log(1 / 3), 0.0]]))  # slopes 2 * 1/4 and 1
        concave.offset.copy_(torch.tensor([[math.log(math.e - 1)]]))  # softplus = 1
    # min(0.5 v + 1, v): the pieces meet at v = 2.
    values = concave(torch.tensor([[0.0], [1.0], [2.0], [4.0]])).squeeze()
    assert values.tolist() == pytest.approx([0, 1, 2, 3])


def test_max_mean_starts_at_sigmoid_of_minus_one():
    a = 1 / (1 + math.e)
    assert MaxMean()(torch.tensor([[1.0, 5.0]])).item() == pytest.approx(a * 5 + (1 - a) * 3)
