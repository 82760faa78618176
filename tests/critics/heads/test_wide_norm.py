"""Wide Norm."""

import math

import pytest
import torch

from mrn.critics.heads.wide_norm import WideNorm, WideNormReleased
from tests.critics.heads.helpers import make_identity


def test_wide_norm_by_hand():
    head = WideNorm(inputs=1, hidden=1, components=1)
    with torch.no_grad():
        head.w.zero_()
        head.w[0, 0] = 2.0  # effective weight 4 on relu(d_0)
        head.w[1, 16] = 1.0  # effective weight 1 on relu(-d_0)
        head.w[1, 1] = math.sqrt(3)  # effective weight 3 on relu(d_1)
        head.concave.slope.zero_()
        head.concave.offset.fill_(100.0)
    d = torch.zeros(1, 16)
    d[0, 0], d[0, 1] = 1.0, 1.0
    zero = torch.zeros(1, 16)
    assert head.distance(d, zero).item() == pytest.approx(5)  # |(4, 3)|
    assert head.distance(zero, d).item() == pytest.approx(1)  # |(0, 1)|


def test_released_wide_norm_by_hand():
    head = WideNormReleased(inputs=1, hidden=1, components=2)
    make_identity(head.concave)
    with torch.no_grad():
        head.w.zero_()
        head.w[0, 0] = -4.0  # component 0: effective weight min(16, 4) on relu(d_0)
        head.w[1, 1] = 3.0  # and 3 on relu(d_1)
        head.w[16, 16] = 0.5  # component 1: effective weight min(1/4, 1/2) on relu(-d_0)
    d = torch.zeros(1, 16)
    d[0, 0], d[0, 1] = 1.0, 1.0
    zero = torch.zeros(1, 16)
    assert head.distance(d, zero).item() == pytest.approx(2.5)  # mean of |(4, 3)| and 0
    assert head.distance(zero, d).item() == pytest.approx(0.125)  # mean of 0 and 1/4
