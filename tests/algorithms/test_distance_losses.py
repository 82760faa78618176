"""Losses of the quasimetric algorithms by hand."""

import math

import pytest
import torch

from mrn.algorithms.distance_losses import (
    info_nce_loss,
    linex_loss,
    logsumexp_penalty,
    mean_of_pairs,
    push_loss,
    violation,
    zero_cost_loss,
)

LOGITS = torch.tensor([[1.0, -2.0], [0.5, 3.0]])


def test_info_nce_by_hand():
    # Row i: log(e^f_i1 + e^f_i2) - f_ii; columns alike.
    rows = math.log(math.e + math.exp(-2)) - 1, math.log(math.exp(0.5) + math.exp(3)) - 3
    columns = math.log(math.e + math.exp(0.5)) - 1, math.log(math.exp(-2) + math.exp(3)) - 3
    forward, backward = sum(rows) / 2, sum(columns) / 2
    assert info_nce_loss(LOGITS, "forward").item() == pytest.approx(forward, rel=1e-6)
    assert info_nce_loss(LOGITS, "backward").item() == pytest.approx(backward, rel=1e-6)
    both = (forward + backward) / 2
    assert info_nce_loss(LOGITS, "symmetric").item() == pytest.approx(both, rel=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_smoothed_ratio_is_lowest(smoothing):
    """The minimum is at log((1 - e) r + e), which is log e where the ratio r is 0."""
    ratio = torch.tensor([[2.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    smoothed = (1 - smoothing) * ratio + smoothing
    logits = smoothed.clamp(min=1e-300).log().requires_grad_()
    for direction in ("forward", "backward", "symmetric"):
        (slope,) = torch.autograd.grad(info_nce_loss(logits, direction, smoothing), logits)
        assert slope.abs().max().item() < 1e-12
        if smoothing:
            (slope,) = torch.autograd.grad(info_nce_loss(logits, direction), logits)
            assert slope.abs().max().item() > 0.01


def test_info_nce_ignores_offsets_of_what_it_normalizes():
    per_goal = LOGITS + torch.tensor([[5.0, -1.0]])
    per_transition = LOGITS + torch.tensor([[5.0], [-1.0]])
    for direction, same, other in (
        ("backward", per_goal, per_transition),
        ("forward", per_transition, per_goal),
    ):
        expected = info_nce_loss(LOGITS, direction)
        torch.testing.assert_close(info_nce_loss(same, direction), expected)
        assert not torch.isclose(info_nce_loss(other, direction), expected)


def test_logsumexp_penalty_is_zero_for_a_log_ratio():
    # Each row of the ratio p(g | s, a) / p(g) has the mean 1 over goals.
    ratio = torch.tensor([[0.5, 1.5], [1.2, 0.8]])
    assert logsumexp_penalty(ratio.log()).item() == pytest.approx(0, abs=1e-12)
    assert logsumexp_penalty(ratio.log() + 2).item() == pytest.approx(4, rel=1e-6)


def test_linex_by_hand():
    distance = torch.tensor([1.0, 0.0, 4.0], requires_grad=True)
    next_distance = torch.tensor([0.5, 1.0, 0.0], requires_grad=True)
    loss = linex_loss(distance, next_distance, 0.9, limit=3.0)
    # 0.9 e^0.5 - 0.5; 0.9 e^-1 + 1; above the limit, the excess 4 itself.
    expected = [0.9 * math.exp(0.5) - 0.5, 0.9 * math.exp(-1) + 1, 4.0]
    assert loss.tolist() == pytest.approx(expected, rel=1e-6)
    loss.sum().backward()
    slopes = [0.9 * math.exp(0.5) - 1, 0.9 * math.exp(-1) - 1, 1.0]
    assert distance.grad.tolist() == pytest.approx(slopes, rel=1e-6)
    assert next_distance.grad is None


@pytest.mark.parametrize("steps", [1.0, 7.0])
def test_linex_is_lowest_at_the_backup(steps):
    distance = torch.tensor(2.0 - steps * math.log(0.9), requires_grad=True)
    linex_loss(distance, torch.tensor(2.0), torch.tensor(0.9) ** steps, 3.0).backward()
    assert distance.grad.item() == pytest.approx(0, abs=1e-6)


def test_linex_averages_occupancies():
    """exp(-d) = gamma E[exp(-d')]: the occupancy before a random transition."""
    remaining = torch.tensor([0.3, 2.0], dtype=torch.float64)
    distance = -torch.log(0.9 * (-remaining).exp().mean())
    distance.requires_grad_()
    linex_loss(distance.expand(2), remaining, 0.9, 3.0).sum().backward()
    assert distance.grad.item() == pytest.approx(0, abs=1e-12)


def test_linex_stays_finite_far_above_its_limit():
    distance = torch.tensor([200.0], requires_grad=True)
    loss = linex_loss(distance, torch.zeros(1), 0.9, 5.0)
    loss.sum().backward()
    assert (loss.item(), distance.grad.item()) == (200, 1)


def test_mean_of_pairs_by_hand():
    pairs = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    means = [mean_of_pairs(pairs, weight).item() for weight in (0.0, 0.5, 1.0)]
    assert means == pytest.approx([3.0, 3.25, 3.5])


def test_zero_cost_loss_by_hand():
    distance = torch.tensor([0.0, math.log(2.0), 50.0], requires_grad=True)
    loss = zero_cost_loss(distance)
    assert loss.item() == pytest.approx((0 + 0.25 + 1) / 3)
    loss.backward()
    # 2 (1 - e^-d) e^-d / 3: no slope at 0, and none far away.
    assert distance.grad.tolist() == pytest.approx([0, 0.5 / 3, 0], abs=1e-6)


def test_push_loss_by_hand():
    distance = torch.tensor([15.0, 35.0], requires_grad=True)
    loss = push_loss(distance, offset=15.0, softness=10.0)
    assert loss.item() == pytest.approx((10 * math.log(2) + 10 * math.log1p(math.exp(-2))) / 2)
    loss.backward()
    slopes = [-0.5 / 2, -1 / (1 + math.exp(2)) / 2]
    assert distance.grad.tolist() == pytest.approx(slopes, rel=1e-6)


def test_violation_by_hand():
    distance = torch.tensor([0.5, 1.0, 3.0])
    assert violation(distance, 1.0).item() == pytest.approx(4 / 3)
    assert violation(distance, 0.0).item() == pytest.approx((0.25 + 1 + 9) / 3)
