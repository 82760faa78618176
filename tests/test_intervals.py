import pytest
import scipy.stats

from mrn.intervals import wilson


def test_wilson_by_hand():
    # n = 200, all of them: low = 1 / (1 + 1.96^2 / 200).
    assert wilson(200, 200) == (1.0, pytest.approx(1 / (1 + 1.959964**2 / 200)), 1.0)
    assert wilson(0, 10) == (0.0, 0.0, pytest.approx(0.2775, abs=1e-4))


@pytest.mark.parametrize(("successes", "trials"), [(1, 1), (3, 7), (50, 100), (199, 200)])
def test_wilson_is_that_of_scipy(successes, trials):
    value, low, high = wilson(successes, trials)
    expected = scipy.stats.binomtest(successes, trials).proportion_ci(method="wilson")
    assert (value, low, high) == pytest.approx((successes / trials, expected.low, expected.high))
