"""Updates with hidden layers in bfloat16, for every algorithm with every critic."""

import pytest
import torch

from mrn.algorithms import ALGORITHMS
from mrn.critics import CRITICS
from mrn.utils.precision import hidden_bfloat16
from tests.algorithms.helpers import generator, make_algorithm, random_batch

PAIRS = [
    (algo, critic)
    for algo, kind in ALGORITHMS.items()
    for critic in (filter(kind.can_use, CRITICS) if kind.uses_critic else ["mrn"])
]


@pytest.mark.parametrize(("algo", "critic"), PAIRS)
def test_update_is_close_to_float32_and_keeps_all_state_in_float32(algo, critic):
    exact, rounded = (make_algorithm(ALGORITHMS[algo], critic) for _ in range(2))
    expected = exact.update(random_batch(), 2, generator())
    with hidden_bfloat16():
        found = rounded.update(random_batch(), 2, generator())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=0.02, atol=0.02)
    assert not torch.equal(found, expected)
    for name, value in rounded.state_dict().items():
        assert value.dtype == exact.state_dict()[name].dtype, name
        assert value.isfinite().all(), name
    moments = {
        value.dtype for each in rounded.optimizers.values() for value in each.state_dict().values()
    }
    assert moments == {torch.float32}
