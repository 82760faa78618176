"""Wilson intervals."""

from math import isnan

import pytest
import scipy.stats

from mrn.utils.intervals import wilson


def test_wilson_matches_hand_calculation():
    # z = 1.96: (200 + z^2/2) / (200 + z^2) -+ z/(200 + z^2) sqrt(z^2/4) = 0.9906 -+ 0.0094
    all_of_200 = wilson(200, 200)
    assert (all_of_200.value, all_of_200.high) == (1.0, 1.0)
    assert all_of_200.low == pytest.approx(0.98115, abs=1e-5)
    # z^2 / (10 + z^2)
    none_of_10 = wilson(0, 10)
    assert (none_of_10.value, none_of_10.low) == (0.0, 0.0)
    assert none_of_10.high == pytest.approx(0.27753, abs=1e-5)


@pytest.mark.parametrize(("successes", "episodes"), [(0, 1), (3, 7), (97, 100), (50, 100)])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_wilson_matches_scipy(successes, episodes, level):
    expected = scipy.stats.binomtest(successes, episodes).proportion_ci(level, method="wilson")
    found = wilson(successes, episodes, level)
    assert found[1:] == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_wilson_without_episodes_is_the_unit_interval():
    value, low, high = wilson(0, 0)
    assert isnan(value)
    assert (low, high) == (0, 1)
