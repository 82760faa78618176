"""Running statistics compared with those of the whole data."""

import numpy as np
import pytest
import torch

from mrn.replay.normalizer import RunningNorm


def test_merged_statistics_equal_those_of_the_whole_data():
    rng = np.random.default_rng(0)
    parts = [
        rng.normal([1e2, -3.0], [1e-1, 4.0], (n, 2)).astype(np.float32) for n in (1, 7, 1000, 40)
    ]
    norm = RunningNorm(2)
    for part in parts:
        norm.update(torch.from_numpy(part))
    everything = np.concatenate(parts).astype(np.float64)
    assert norm.mean.tolist() == pytest.approx(everything.mean(0).tolist(), rel=1e-12)
    assert norm.scale.tolist() == pytest.approx((1 / everything.std(0)).tolist(), rel=1e-6)
    value = torch.tensor([[100.05, 1.0]])
    expected = (value.numpy() - everything.mean(0)) / everything.std(0)
    assert norm(value).tolist()[0] == pytest.approx(expected[0].tolist(), rel=1e-4)


def test_without_data_the_norm_only_clips():
    assert RunningNorm(3)(torch.tensor([[0.5, 7.0, -900.0]])).tolist() == [[0.5, 5.0, -5.0]]


def test_constant_feature_gets_the_minimum_std():
    norm = RunningNorm(1)
    norm.update(torch.full((10, 1), 3.0))
    assert norm(torch.tensor([[3.02]])).item() == pytest.approx(2.0, rel=1e-4)


def test_raw_values_are_clipped_before_standardization():
    norm = RunningNorm(1)
    norm.update(torch.tensor([[-1e9], [1e9]]))
    assert norm.mean.item() == 0
    assert norm.scale.item() == pytest.approx(1 / 200)
    assert norm(torch.tensor([[1e9]])).item() == pytest.approx(1.0)


def test_values_are_clipped_after_standardization():
    norm = RunningNorm(1)
    norm.update(torch.randn(1000, 1, generator=torch.Generator().manual_seed(0)))
    assert norm(torch.tensor([[100.0], [-100.0]])).tolist() == [[5.0], [-5.0]]


def test_statistics_survive_a_state_dict_round_trip():
    norm, other = RunningNorm(2), RunningNorm(2)
    norm.update(torch.randn(50, 2))
    other.load_state_dict(norm.state_dict())
    more = torch.randn(20, 2)
    for each in (norm, other):
        each.update(more)
    assert torch.equal(norm.scale, other.scale)
    assert norm.mean.dtype == torch.float64
