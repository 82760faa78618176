"""Statistics against hand calculation, SciPy, rliable and simulated data."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from rliable import library, metrics

from mrn.analysis import statistics as stats
from mrn.utils.intervals import improvement_interval, t_quantile, wilson

RNG = np.random.default_rng(3)
UNKNOWN = np.zeros(50)


def test_mean_and_std_match_hand_calculation():
    mean, std = stats.mean_and_std(np.array([[0.0, 0.5], [1.0, np.nan], [0.5, np.nan]]))
    np.testing.assert_allclose(mean, [0.5, 0.5])
    np.testing.assert_allclose(std, [0.5, np.nan])  # sqrt((0.25 + 0.25) / 2); NaN for one value


def test_area_and_first_reaching_match_hand_calculation():
    success, episodes = np.array([0.0, 0.6, 0.4, 1.0]), np.array([10.0, 20, 30, 40])
    assert stats.area_under_curve(success) == 0.5
    assert stats.first_reaching(success, episodes, 0.5) == 20
    assert stats.first_reaching(success, episodes, 0.9) == 40
    assert stats.first_reaching(success[:3], episodes, 0.9) == np.inf


def test_t_quantiles_match_scipy():
    for freedom, level in itertools.product([*range(1, 40), 200], (0.5, 0.95, 0.99)):
        expected = scipy.stats.t.ppf((1 + level) / 2, freedom)
        assert t_quantile(freedom, level) == pytest.approx(expected, rel=1e-10)


def test_mean_interval_matches_scipy():
    values = RNG.random(5)
    expected = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert stats.mean_interval(values) == pytest.approx((values.mean(), *expected))
    assert stats.rate_interval(values, UNKNOWN[:5]).low == pytest.approx(max(expected[0], 0))


def covered(intervals, truth):
    return np.mean([each.low <= truth <= each.high for each in intervals])


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
def test_intervals_of_few_seeds_have_nominal_coverage(seeds):
    rng = np.random.default_rng(seeds)
    rates = [rng.normal(0.5, 0.1, seeds) for _ in range(3000)]
    found = [stats.rate_interval(each, UNKNOWN[:seeds]) for each in rates]
    assert covered(found, 0.5) == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
def test_intervals_of_a_difference_have_at_least_nominal_coverage(seeds):
    rng, unknown = np.random.default_rng(seeds), UNKNOWN[:seeds]
    pairs = [(rng.normal(0.6, 0.1, seeds), rng.normal(0.5, 0.05, seeds)) for _ in range(3000)]
    found = [stats.difference_interval((x, unknown), (y, unknown)) for x, y in pairs]
    assert covered(found, 0.1) > 0.935


def test_difference_interval_matches_scipy():
    ours, theirs = RNG.random(6), RNG.random(6) / 10
    found = stats.difference_interval((ours, UNKNOWN[:6]), (theirs, UNKNOWN[:6]))
    welch = scipy.stats.ttest_ind(ours, theirs, equal_var=False)
    low, high = welch.confidence_interval(0.95)
    assert found.value == pytest.approx(ours.mean() - theirs.mean())
    # Degrees of freedom are rounded down, which widens the interval a little.
    assert found.high - found.low == pytest.approx(high - low, rel=0.03)
    assert found.low <= low
    assert found.high >= high


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_equal_seeds_have_an_interval(rate):
    """Seeds that succeed in all episodes are no certainty."""
    found = stats.rate_interval(np.full(3, rate), np.full(3, 100))
    assert found == pytest.approx(wilson(300 * rate, 300))
    assert found.high - found.low > 0.01
    unknown = stats.rate_interval(np.full(3, rate), UNKNOWN[:3])
    assert not unknown.known
    pair = (np.full(3, rate), UNKNOWN[:3]), (np.full(3, 0.5), UNKNOWN[:3])
    assert not stats.difference_interval(*pair).known


def test_interquartile_mean_matches_scipy():
    for tasks, seeds in itertools.product((1, 2, 3, 7), (2, 3, 5)):
        scores = RNG.random((tasks, seeds))
        expected = scipy.stats.trim_mean(scores.ravel(), 0.25)
        assert stats.aggregate(list(scores), True, RNG).value == pytest.approx(expected)
        assert stats.aggregate(list(scores), False, RNG).value == pytest.approx(scores.mean())


@pytest.mark.parametrize("trimmed", [True, False])
def test_tasks_count_equally_in_aggregates(trimmed):
    """Two methods with equal results, and 5 and 2 seeds or 2 and 5."""
    one = stats.aggregate([np.ones(5), np.zeros(2)], trimmed, RNG)
    other = stats.aggregate([np.ones(2), np.zeros(5)], trimmed, RNG)
    assert one.value == pytest.approx(0.5)
    assert other.value == pytest.approx(0.5)


def test_fewer_than_four_values_have_no_interquartile_mean():
    assert not stats.is_trimmed([np.ones(1)] * 3)
    assert stats.is_trimmed([np.ones(2)] * 2)


@pytest.mark.parametrize(("tasks", "seeds"), [(2, 2), (3, 3), (12, 3), (12, 5)])
@pytest.mark.parametrize("trimmed", [True, False])
def test_intervals_of_aggregates_have_at_least_nominal_coverage(tasks, seeds, trimmed):
    rng = np.random.default_rng(tasks)
    scores = [list(rng.normal(0.5, 0.1, (tasks, seeds))) for _ in range(400)]
    assert covered([stats.aggregate(each, trimmed, rng) for each in scores], 0.5) > 0.925


@pytest.mark.filterwarnings("ignore")
def test_aggregates_of_many_runs_match_rliable():
    # rliable requires equally many runs per task: (runs, tasks)
    rng, state = np.random.default_rng(1), np.random.RandomState(0)
    ours, theirs = rng.beta(2, 1, size=(20, 6)), rng.beta(1.5, 1, size=(20, 6))
    point, interval = library.get_interval_estimates(
        {"iqm": ours},
        lambda x: np.array([metrics.aggregate_iqm(x)]),
        reps=2000,
        random_state=state,
    )
    found = stats.aggregate(list(ours.T), True, np.random.default_rng(0))
    width = found.high - found.low
    assert found.value == pytest.approx(point["iqm"][0])
    np.testing.assert_allclose(found[1:], interval["iqm"][:, 0], atol=0.1 * width)
    point, interval = library.get_interval_estimates(
        {"p": (ours, theirs)}, metrics.probability_of_improvement, reps=1000, random_state=state
    )
    found = stats.aggregate_improvement(list(ours.T), list(theirs.T))
    width = found.high - found.low
    assert found.value == pytest.approx(point["p"])
    np.testing.assert_allclose(found[1:], interval["p"].ravel(), atol=0.1 * width)


def test_probability_of_improvement_matches_brute_force():
    # Rounded to create ties.
    ours = [RNG.random(n).round(1) for n in (5, 3, 8)]
    theirs = [RNG.random(n).round(1) for n in (4, 3, 2)]
    expected = 0.0
    for x, y in zip(ours, theirs, strict=True):
        wins = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in itertools.product(x, y))
        expected += wins / (len(x) * len(y)) / 3
    found = stats.aggregate_improvement(ours, theirs)
    reverse = stats.aggregate_improvement(theirs, ours)
    assert found.value == pytest.approx(expected)
    assert reverse == pytest.approx((1 - expected, 1 - found.high, 1 - found.low))
    u, _ = scipy.stats.mannwhitneyu(ours[0], theirs[0])
    assert stats.aggregate_improvement(ours[:1], theirs[:1]).value == pytest.approx(u / (5 * 4))


@pytest.mark.parametrize(("seeds", "distance"), itertools.product((2, 3, 5, 10), (0, 1, 2)))
def test_intervals_of_improvement_have_at_least_nominal_coverage(seeds, distance):
    rng, truth = np.random.default_rng(seeds), (1 + math.erf(distance / 2)) / 2
    pairs = [(rng.normal(distance, 1, seeds), rng.normal(0, 1, seeds)) for _ in range(400)]
    found = [stats.aggregate_improvement([x], [y]) for x, y in pairs]
    assert covered(found, truth) > 0.92


def test_agreement_of_few_seeds_is_no_certainty():
    # Three seeds beat three others by chance in one case of 20: 0.5 is not excluded.
    assert improvement_interval(1.0, 3, 3).low < 0.5
    assert improvement_interval(1.0, 2, 2).low < improvement_interval(1.0, 3, 3).low
    assert improvement_interval(1.0, 10, 10).low > 0.7
    assert improvement_interval(1.0, 3, 3).high == 1


@pytest.mark.parametrize("more", [[0.6], [0.6, 0.6, 0.6]])
def test_single_run_has_no_interval(more):
    # The same holds for a mean in which one task has a single run: its variance is unknown.
    found = stats.aggregate([np.array([0.4]), np.array(more)], False, RNG)
    assert found.value == pytest.approx(0.5)
    assert not found.known


@pytest.mark.parametrize("seeds", [2, 5, 12])
def test_band_equals_the_interval_of_the_tables(seeds):
    values, episodes = RNG.random((seeds, 6)), np.arange(1, seeds + 1) * 10
    values[0, 3:] = np.nan
    values[1:, 5] = np.nan
    rates, means = np.array(stats.rate_band(values, episodes)), np.array(stats.mean_band(values))
    for epoch, column in enumerate(values.T):
        there = ~np.isnan(column)
        expected = stats.rate_interval(column[there], episodes[there])
        np.testing.assert_array_equal(rates[:, epoch], expected[1:])
        np.testing.assert_array_equal(means[:, epoch], stats.mean_interval(column[there])[1:])
