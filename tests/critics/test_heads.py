"""All heads: metric axioms and finite gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mrn.critics.heads import HEADS
from mrn.critics.heads.base import Head
from mrn.critics.heads.deep_norm import DeepNorm, DeepNormReleased
from mrn.critics.heads.iqe import IQE
from mrn.critics.heads.mrn import MRN, MRNAsymmetric, MRNSquared, MRNSymmetric
from mrn.critics.heads.pqe import PQE, PQEReleased
from mrn.critics.heads.wide_norm import WideNorm, WideNormReleased

INPUTS = 5
BUILD = {
    MRN: lambda: MRN(INPUTS, 7),
    MRNSymmetric: lambda: MRNSymmetric(INPUTS, 7),
    MRNAsymmetric: lambda: MRNAsymmetric(INPUTS, 7),
    MRNSquared: lambda: MRNSquared(INPUTS, 7),
    DeepNorm: lambda: DeepNorm(INPUTS, 7, 9),
    WideNorm: lambda: WideNorm(INPUTS, 7, 4),
    PQE: lambda: PQE(INPUTS, 7, 6),
    IQE: lambda: IQE(INPUTS, 7, 3),
    DeepNormReleased: lambda: DeepNormReleased(INPUTS, 7, 9),
    WideNormReleased: lambda: WideNormReleased(INPUTS, 7, 4),
    PQEReleased: lambda: PQEReleased(INPUTS, 7),
}
QUASIMETRICS = [head for head in BUILD if head.is_quasimetric]


def random_head(head_class, seed: int, weight_scale: float) -> Head:
    torch.manual_seed(seed)
    head = BUILD[head_class]().double()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_(0, weight_scale)
    return head


def points(seed: int, scale: float, count: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(count, INPUTS, generator=generator, dtype=torch.float64)


seeds = st.integers(0, 2**31 - 1)
scales = st.floats(-3, 3).map(lambda exponent: 10.0**exponent)
weight_scales = st.floats(-1.5, 0.5).map(lambda exponent: 10.0**exponent)


@pytest.mark.parametrize("head_class", BUILD)
@given(seed=seeds, scale=scales, weight_scale=weight_scales)
@settings(max_examples=60, deadline=None)
def test_distance_is_non_negative_and_zero_to_itself(head_class, seed, scale, weight_scale):
    head = random_head(head_class, seed, weight_scale)
    x = points(seed, scale, 32)
    y = points(seed + 1, scale, 32)
    assert (head(x, y) >= 0).all()
    assert (head(x, x) == 0).all()


@pytest.mark.parametrize("head_class", QUASIMETRICS)
@given(seed=seeds, scale=scales, weight_scale=weight_scales, between=st.floats(0, 1))
@settings(max_examples=120, deadline=None)
def test_triangle_inequality(head_class, seed, scale, weight_scale, between):
    head = random_head(head_class, seed, weight_scale)
    x, y, z = (points(seed + i, scale, 64) for i in range(3))
    y[:16] = x[:16] + between * (z[:16] - x[:16])  # on the segment, where the inequality is tight
    direct, detour = head(x, z), head(x, y) + head(y, z)
    assert (direct <= detour * (1 + 1e-9)).all()


@pytest.mark.parametrize("head_class", BUILD)
def test_pairs_broadcast(head_class):
    head = random_head(head_class, 1, 0.5)
    x, y = points(1, 1.0, 4), points(2, 1.0, 3)
    pairs = head(x.unsqueeze(1), y.unsqueeze(0))
    assert pairs.shape == (4, 3)
    for i in range(4):
        torch.testing.assert_close(pairs[i], head(x[i].expand(3, -1), y), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("head_class", BUILD)
def test_pairs_equal_broadcasting_in_value_and_gradient(head_class):
    head = random_head(head_class, 1, 0.5)
    x, y = points(1, 1.0, 7), points(2, 1.0, 5)
    y[2] = x[3]  # distance 0, where the gradient must be 0 rather than NaN
    weights = torch.linspace(-1, 1, 35, dtype=torch.float64).view(7, 5)

    def evaluate(distances):
        inputs = [x.clone().requires_grad_(), y.clone().requires_grad_()]
        result = distances(*inputs)
        (result * weights).sum().backward()
        return result.detach(), *(each.grad for each in inputs)

    expected = evaluate(lambda x, y: head(x.unsqueeze(1), y.unsqueeze(0)))
    torch.testing.assert_close(evaluate(head.pairs), expected, rtol=1e-9, atol=1e-12)


def test_is_quasimetric_flags():
    claims = {head.__name__: head.is_quasimetric for head in BUILD}
    assert claims.pop("MRNSquared") is False
    assert set(claims.values()) == {True}
    assert "is_quasimetric=True" in repr(BUILD[IQE]())
    assert [name for name, design in HEADS.items() if not design.is_quasimetric] == ["mrn-squared"]


@pytest.mark.parametrize("head_class", BUILD)
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e6])
def test_gradients_are_finite_at_equal_points_and_far_away(head_class, scale):
    head = random_head(head_class, 3, 0.3).float()
    x = (scale * points(4, 1.0, 8)).float().requires_grad_()
    far = (scale * points(5, 1.0, 8)).float()
    for y in (x.detach().clone(), far):
        value = head(x, y)
        # Raises if the distance does not depend on x or on a weight.
        gradients = torch.autograd.grad(value.sum(), [x, *head.parameters()])
        assert value.isfinite().all()
        assert all(gradient.isfinite().all() for gradient in gradients)
        if scale == 1 and y is far:
            assert gradients[0].any()
            assert any(gradient.any() for gradient in gradients[1:])


def test_released_heads_have_the_released_initialization():
    torch.manual_seed(0)
    deep, wide = DeepNormReleased(1, 1, 162), WideNormReleased(1, 1, 62)
    for weight, inputs in ((deep.u0.weight, 16), (deep.u.weight, 16), (deep.w, 162), (wide.w, 32)):
        assert weight.abs().max().item() == pytest.approx(inputs**-0.5, rel=0.01)
        assert weight.std().item() == pytest.approx((3 * inputs) ** -0.5, rel=0.05)
    for build, total in ((lambda: PQEReleased(1, 1), 1), (lambda: PQE(1, 1, 150), 16)):
        sums = torch.stack([build().weights().sum() for _ in range(300)])
        assert sums.mean().item() == pytest.approx(total, rel=0.15)
