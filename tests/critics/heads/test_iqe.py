"""Interval Quasimetric Embedding."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mrn.critics.heads.iqe import union_length


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
