"""Heads: metric axioms, values computed by hand, finite gradients."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mrn.critics.heads.base import Concave, Head, MaxMean
from mrn.critics.heads.deep_norm import DeepNorm, DeepNormReleased
from mrn.critics.heads.iqe import IQE, union_length
from mrn.critics.heads.mrn import MRN, MRNAsymmetric, MRNSquared, MRNSymmetric, asymmetric_part
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


def test_is_quasimetric_flags():
    claims = {head.__name__: head.is_quasimetric for head in BUILD}
    assert claims.pop("MRNSquared") is False
    assert set(claims.values()) == {True}
    assert "is_quasimetric=True" in repr(BUILD[IQE]())


def test_squared_head_violates_the_triangle_inequality():
    head = random_head(MRNSquared, 0, 0.3)
    x, z = points(1, 1.0, 256), points(2, 1.0, 256)
    direct, detour = head(x, z), head(x, (x + z) / 2) + head((x + z) / 2, z)
    assert (direct > 1.2 * detour).any()


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


def make_identity(concave: Concave) -> None:
    with torch.no_grad():
        concave.slope.zero_()  # slopes 1
        concave.offset.fill_(100.0)


@pytest.mark.parametrize(
    ("head_class", "w", "there", "back"),
    [
        # effective w = 9: h1 = relu(2 * 0.5) = 1; h = relu(9 * 1 - 0.5) = 8.5.
        # Backwards: h1 = relu(-1) = 0; h = relu(0 + 0.5) = 0.5.
        (DeepNorm, 3.0, 8.5, 0.5),
        # effective w = min(9, 3): h = relu(3 * 1 - 0.5). Backwards: relu(-3 + 0.5) = 0.
        (DeepNormReleased, 3.0, 2.5, 0.0),
        # effective w = min(1/4, 1/2): h = relu(1/4 - 0.5) = 0. Backwards: relu(-1/4 + 0.5).
        (DeepNormReleased, -0.5, 0.0, 0.25),
    ],
)
def test_deep_norm_by_hand(head_class, w, there, back):
    head = head_class(inputs=1, hidden=1, width=1)
    make_identity(head.concave)
    with torch.no_grad():
        head.u0.weight.fill_(2.0)
        head.u.weight.fill_(-1.0)
        head.w.fill_(w)
    d = torch.zeros(1, 16)
    d[0, 0] = 0.5
    zero = torch.zeros(1, 16)
    assert head.distance(d, zero).item() == pytest.approx(there)
    assert head.distance(zero, d).item() == pytest.approx(back)


def test_released_deep_norm_collapses_to_one_layer():
    """Without the ReLU, two linear layers are one; with it, they are not."""
    d, zero = 3 * points(1, 1.0, 64).repeat(1, 4)[:, :16], torch.zeros(64, 16).double()
    for head_class, collapses in ((DeepNormReleased, True), (DeepNorm, False)):
        head = random_head(head_class, 2, 1.0)
        one = head.effective_w() @ head.u0.weight + head.u.weight  # (width, embedding)
        expected = head.concave((d @ one.T).relu()).mean(dim=-1)
        assert torch.allclose(head.distance(d, zero), expected) is collapses


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


def test_released_heads_have_the_released_initialization():
    torch.manual_seed(0)
    deep, wide = DeepNormReleased(1, 1, 162), WideNormReleased(1, 1, 62)
    for weight, inputs in ((deep.u0.weight, 16), (deep.u.weight, 16), (deep.w, 162), (wide.w, 32)):
        assert weight.abs().max().item() == pytest.approx(inputs**-0.5, rel=0.01)
        assert weight.std().item() == pytest.approx((3 * inputs) ** -0.5, rel=0.05)
    for build, total in ((lambda: PQEReleased(1, 1), 1), (lambda: PQE(1, 1, 150), 16)):
        sums = torch.stack([build().weights().sum() for _ in range(300)])
        assert sums.mean().item() == pytest.approx(total, rel=0.15)


def test_iqe_union_by_hand():
    # [0, 2] and [1, 3] overlap, [5, 6] is separate, [7, 4] is empty: 3 + 1.
    left = torch.tensor([5.0, 0.0, 7.0, 1.0])
    right = torch.tensor([6.0, 2.0, 4.0, 3.0])
    assert union_length(left, right).item() == 4


def brute_force_union(left: np.ndarray, right: np.ndarray) -> float:
    """Return the total length of the cells between end points that some interval covers."""
    ends = np.unique(np.concatenate([left, right]))
    cells = pairwise(ends)
    return sum(b - a for a, b in cells if ((left <= a) & (b <= right)).any())


@given(
    st.lists(
        st.tuples(st.integers(-20, 20), st.integers(-20, 20)) | st.tuples(*[st.floats(-9, 9)] * 2),
        min_size=1,
        max_size=8,
    )
)
@settings(max_examples=300, deadline=None)
def test_iqe_union_against_brute_force(intervals):
    left, right = (np.array(ends, float) for ends in zip(*intervals, strict=True))
    length = union_length(torch.tensor(left), torch.tensor(right)).item()
    assert length == pytest.approx(brute_force_union(left, right), abs=1e-9)


@pytest.mark.parametrize("head_class", BUILD)
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e6])
def test_gradients_are_finite_at_equal_points_and_far_away(head_class, scale):
    head = random_head(head_class, 3, 0.3).float()
    x = (scale * points(4, 1.0, 8)).float().requires_grad_()
    far = (scale * points(5, 1.0, 8)).float()
    for y in (x.detach().clone(), far):
        value = head(x, y)
        gradients = torch.autograd.grad(value.sum(), [x, *head.parameters()], allow_unused=True)
        assert value.isfinite().all()
        assert all(g.isfinite().all() for g in gradients if g is not None)


def test_gradient_exists_away_from_zero():
    """The safe norm must keep its gradient: d/dx |x| = sign(x) for n = 1."""
    head = MRNSymmetric(inputs=1, hidden=1, embedding=1)
    set_weights(head, [[1.0]], [[[2.0]]])
    x = torch.tensor([[3.0]], requires_grad=True)
    head(x, torch.tensor([[1.0]])).sum().backward()
    assert x.grad is not None
    assert x.grad.item() == pytest.approx(2.0)


@given(seed=seeds, size=st.integers(2, 12))
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
