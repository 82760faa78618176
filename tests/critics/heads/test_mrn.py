"""MRN and its ablations."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mrn.critics.heads.mrn import MRN, MRNAsymmetric, MRNSquared, MRNSymmetric, asymmetric_part
from tests.critics.test_heads import points, random_head


def set_weights(head: MRN, hidden: list[list[float]], outputs: list[list[list[float]]]) -> None:
    with torch.no_grad():
        head.hidden.weight.copy_(torch.tensor(hidden))
        head.hidden.bias.zero_()
        for layer, weight in zip(head.outputs, outputs, strict=True):
            assert isinstance(layer, torch.nn.Linear)
            layer.weight.copy_(torch.tensor(weight))
            layer.bias.zero_()


def test_mrn_by_hand():
    # One hidden unit per part that copies the (positive) input; two features each.
    head = MRN(inputs=1, hidden=1, embedding=2)
    set_weights(head, [[1.0], [1.0]], [[[3.0], [4.0]], [[2.0], [-1.0]]])
    x, y = torch.tensor([[3.0]]), torch.tensor([[1.0]])
    # phi differs by (6, 8): rms = sqrt((36 + 64) / 2); h differs by (4, -2): max relu = 4.
    assert head(x, y).item() == pytest.approx(math.sqrt(50) + 4)
    # Backwards h differs by (-4, 2).
    assert head(y, x).item() == pytest.approx(math.sqrt(50) + 2)
    for ablation, there, back in (
        (MRNSymmetric, math.sqrt(50), math.sqrt(50)),
        (MRNAsymmetric, 4, 2),
        (MRNSquared, 54, 52),
    ):
        other = ablation(inputs=1, hidden=1, embedding=2)
        parts = {MRNSymmetric: [[[3.0], [4.0]]], MRNAsymmetric: [[[2.0], [-1.0]]]}
        outputs = parts.get(ablation, [[[3.0], [4.0]], [[2.0], [-1.0]]])
        set_weights(other, [[1.0]] * len(outputs), outputs)
        assert other(x, y).item() == pytest.approx(there)
        assert other(y, x).item() == pytest.approx(back)


def test_mrn_asymmetric_part_is_never_negative():
    h_x, h_y = torch.tensor([[1.0, 2.0]]), torch.tensor([[5.0, 4.0]])
    assert asymmetric_part(h_x, h_y).item() == 0
    assert asymmetric_part(h_y, h_x).item() == 4


def test_squared_head_violates_the_triangle_inequality():
    head = random_head(MRNSquared, 0, 0.3)
    x, z = points(1, 1.0, 256), points(2, 1.0, 256)
    direct, detour = head(x, z), head(x, (x + z) / 2) + head((x + z) / 2, z)
    assert (direct > 1.2 * detour).any()


def test_gradient_exists_away_from_zero():
    """The safe norm must keep its gradient: d/dx |x| = sign(x) for n = 1."""
    head = MRNSymmetric(inputs=1, hidden=1, embedding=1)
    set_weights(head, [[1.0]], [[[2.0]]])
    x = torch.tensor([[3.0]], requires_grad=True)
    head(x, torch.tensor([[1.0]])).sum().backward()
    assert x.grad is not None
    assert x.grad.item() == pytest.approx(2.0)


@given(seed=st.integers(0, 2**31 - 1), size=st.integers(2, 12))
@settings(max_examples=60, deadline=None)
def test_theorem_2_landmarks_reproduce_any_finite_quasimetric(seed, size):
    """With h_i(x) = v(x, xi_i) for all points xi_i, max_i relu(h_i(x) - h_i(y)) is v itself."""
    generator = np.random.default_rng(seed)
    v = generator.uniform(0.1, 10, (size, size))
    np.fill_diagonal(v, 0)
    for middle in range(size):  # shortest paths make any non-negative matrix a quasimetric
        v = np.minimum(v, v[:, [middle]] + v[[middle], :])
    h = torch.tensor(v)  # h[x] = (v(x, xi_1), ..., v(x, xi_n))
    rebuilt = torch.stack([asymmetric_part(h[x].expand(size, -1), h) for x in range(size)])
    assert torch.allclose(rebuilt, h, rtol=1e-12, atol=1e-12)
    assert not torch.allclose(h, h.T)
