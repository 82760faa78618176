"""Poisson Quasimetric Embedding."""

import math

import pytest
import torch

from mrn.critics.heads.pqe import PQE, PQEReleased


def pqe_with_weights_4_and_1() -> PQE:
    head = PQE(inputs=1, hidden=1, width=1)
    with torch.no_grad():
        head.first.fill_(2.0)
        head.second.fill_(1.0)
        head.third.zero_()
        head.third[0, 0], head.third[1, 0] = 1.0, 0.5
    return head


def released_pqe_with_weights_4_and_1() -> PQEReleased:
    head = PQEReleased(inputs=1, hidden=1)
    row, second, third, last = head.mixture.factors
    with torch.no_grad():
        for factor in head.mixture.factors:
            factor.zero_()
        row[5], second[5, 0], third[0, 7] = 2.0, 3.0, -1.0  # -6
        last[7, 0], last[7, 1] = 0.5, 0.5  # -3, -3
        head.mixture.offset[0], head.mixture.offset[1] = 1.0, 4.0  # -2, 1; the others stay 0
    return head


@pytest.mark.parametrize("build", [pqe_with_weights_4_and_1, released_pqe_with_weights_4_and_1])
def test_pqe_by_hand(build):
    head = build()
    assert head.weights().tolist() == pytest.approx([4, 1] + 14 * [0])
    u = torch.zeros(1, 64)
    u[0, 0] = 8.0  # component 0: mean of (8, 0, 0, 0) = 2
    u[0, 4:8] = torch.tensor([1.0, -5.0, 3.0, 0.0])  # component 1: mean of (1, 0, 3, 0) = 1
    distance = head.distance(u, torch.zeros(1, 64)).item()
    assert distance == pytest.approx(4 * (1 - math.exp(-2)) + (1 - math.exp(-1)), rel=1e-6)
