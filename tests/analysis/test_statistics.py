"""Statistics against hand calculation, SciPy and rliable."""

import itertools

import numpy as np
import pytest
import scipy.stats
from rliable import library, metrics

from mrn.analysis import statistics as stats

RNG = np.random.default_rng(3)


def test_mean_and_std_match_hand_calculation():
    mean, std = stats.mean_and_std(np.array([[0.0, 0.5], [1.0, np.nan], [0.5, np.nan]]))
    np.testing.assert_allclose(mean, [0.5, 0.5])
    np.testing.assert_allclose(std, [0.5, np.nan])  # sqrt((0.25 + 0.25) / 2); NaN for one value


def test_interquartile_mean_matches_scipy():
    values = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0])
    assert stats.interquartile_mean(values) == pytest.approx((0.2 + 0.3 + 0.4 + 0.5) / 4)
    for count in range(1, 30):
        values = RNG.random(count)
        expected = scipy.stats.trim_mean(values, 0.25)
        assert stats.interquartile_mean(values) == pytest.approx(expected)


def test_area_and_first_reaching_match_hand_calculation():
    success, episodes = np.array([0.0, 0.6, 0.4, 1.0]), np.array([10.0, 20, 30, 40])
    assert stats.area_under_curve(success) == 0.5
    assert stats.first_reaching(success, episodes, 0.5) == 20
    assert stats.first_reaching(success, episodes, 0.9) == 40
    assert stats.first_reaching(success[:3], episodes, 0.9) == np.inf


def test_probability_of_improvement_matches_brute_force():
    # Rounded to create ties.
    ours = [RNG.random(n).round(1) for n in (5, 3, 8)]
    theirs = [RNG.random(n).round(1) for n in (4, 3, 1)]
    expected = 0.0
    for x, y in zip(ours, theirs, strict=True):
        wins = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in itertools.product(x, y))
        expected += wins / (len(x) * len(y)) / 3

    def improvement(ours, theirs):
        return stats.aggregate_improvement(ours, theirs, np.random.default_rng(0)).value

    assert improvement(ours, theirs) == pytest.approx(expected)
    assert improvement(theirs, ours) == pytest.approx(1 - expected)
    u, _ = scipy.stats.mannwhitneyu(ours[0], theirs[0])
    assert improvement(ours[:1], theirs[:1]) == pytest.approx(u / (5 * 4))


@pytest.mark.filterwarnings("ignore")
def test_intervals_match_rliable():
    # rliable requires equally many runs per task: (runs, tasks)
    rng, state = np.random.default_rng(1), np.random.RandomState(0)
    ours, theirs = rng.beta(2, 1, size=(5, 6)), rng.beta(1.5, 1, size=(5, 6))
    point, interval = library.get_interval_estimates(
        {"iqm": ours},
        lambda x: np.array([metrics.aggregate_iqm(x)]),
        reps=4000,
        random_state=state,
    )
    found = stats.bootstrap(
        list(ours.T),
        lambda draws: stats.interquartile_mean(np.concatenate(draws, axis=-1)),
        np.random.default_rng(0),
        repetitions=4000,
    )
    assert found.value == pytest.approx(point["iqm"][0])
    # Two bootstraps of 4000 samples differ by about 1% of the width by chance.
    width = found.high - found.low
    assert found.low == pytest.approx(interval["iqm"][0, 0], abs=0.06 * width)
    assert found.high == pytest.approx(interval["iqm"][1, 0], abs=0.06 * width)

    point, interval = library.get_interval_estimates(
        {"p": (ours, theirs)}, metrics.probability_of_improvement, reps=2000, random_state=state
    )
    found = stats.aggregate_improvement(list(ours.T), list(theirs.T), np.random.default_rng(0))
    width = found.high - found.low
    assert found.value == pytest.approx(point["p"])
    assert found.low == pytest.approx(interval["p"][0], abs=0.1 * width)
    assert found.high == pytest.approx(interval["p"][1], abs=0.1 * width)


def test_intervals_have_nominal_coverage():
    # 12 tasks with 10 runs each and different means; the mean over tasks is known.
    rng = np.random.default_rng(1)
    means = np.linspace(0.1, 0.9, 12)
    covered = 0
    for _ in range(400):
        scores = list(rng.normal(means[:, None], 0.1, size=(12, 10)))
        mean = stats.bootstrap(
            scores, lambda d: np.mean([t.mean(axis=-1) for t in d], axis=0), rng, repetitions=500
        )
        covered += mean.low <= 0.5 <= mean.high
    # 95% in the limit. With 10 runs the bootstrap variance is 10% too small, which gives 93.7%:
    # 375 of 400, with a standard deviation of 5.
    assert 360 <= covered <= 390


def test_samples_of_few_runs_are_enumerated():
    runs = np.array([0.49, 0.56, 0.79, 0.8, 0.83])
    means = sorted(np.mean(draw) for draw in itertools.product(runs, repeat=5))
    low, high = means[int(np.ceil(0.025 * 5**5)) - 1], means[int(np.ceil(0.975 * 5**5)) - 1]
    found = stats.aggregate_mean([runs], RNG)
    assert found == pytest.approx((runs.mean(), low, high))
    # Two tasks with two runs: 16 samples, 4 with the lowest in one task, 1 in both.
    two = [np.array([0.0, 0.4]), np.array([0.2, 1.0])]
    assert stats.aggregate_mean(two, RNG) == pytest.approx((0.4, 0.1, 0.7))
    # Two methods with 5 runs have 3,125 ** 2 samples. Random ones would give different ends.
    ours, theirs = [RNG.random(5)], [RNG.random(5)]
    ends = {stats.aggregate_improvement(ours, theirs, np.random.default_rng(k)) for k in range(5)}
    assert len(ends) == 1


@pytest.mark.parametrize(("seeds", "share"), [(2, 0.5), (3, 0.75), (5, 0.84), (10, 0.9)])
def test_coverage_with_few_runs(seeds, share):
    """As documented in docs/sweeps.md. The range of n runs covers 1 - 2 / 2 ** n."""
    rng = np.random.default_rng(seeds)
    found = [stats.aggregate_mean([rng.normal(size=seeds)], rng) for _ in range(1000)]
    covered = np.mean([interval.low <= 0 <= interval.high for interval in found])
    assert covered == pytest.approx(share, abs=0.035)  # at most three standard deviations


def test_coverage_of_the_interquartile_mean():
    rng = np.random.default_rng(2)
    truth = stats.interquartile_mean(rng.beta(2, 2, size=1_000_000))
    covered = sum(
        low <= truth <= high
        for _ in range(300)
        for _, low, high in [stats.aggregate_iqm(list(rng.beta(2, 2, size=(12, 8))), rng)]
    )
    assert 270 <= covered <= 297


@pytest.mark.parametrize("more", [[0.6], [0.6, 0.6, 0.6]])
def test_single_run_has_no_interval(more):
    # The same holds for a mean in which one task has a single run: its variance is unknown.
    value, low, high = stats.aggregate_mean([np.array([0.4]), np.array(more)], RNG)
    assert value == pytest.approx(0.5)
    assert np.isnan(low)
    assert np.isnan(high)


def test_band_is_the_interval_of_the_available_runs():
    values = np.array([[0.0, 0.3, 0.5], [1.0, 0.3, np.nan], [0.5, np.nan, np.nan]])
    low, high = stats.mean_band(values)
    # With three runs, 1 of 27 samples is the lowest three times: more than 2.5%.
    np.testing.assert_allclose(low, [0.0, 0.3, np.nan])
    np.testing.assert_allclose(high, [1.0, 0.3, np.nan])
    many = RNG.beta(0.3, 0.3, size=(40, 2))
    low, high = stats.mean_band(many)
    error = many.std(axis=0) / np.sqrt(40)
    np.testing.assert_allclose(high - low, 2 * 1.96 * error, rtol=0.1)


@pytest.mark.parametrize("seeds", [2, 5, 7, 12])
def test_band_equals_the_interval_of_the_tables(seeds):
    values = RNG.random((seeds, 6))
    values[0, 3:] = np.nan
    ends = np.array(stats.mean_band(values))
    for epoch, column in enumerate(values.T):
        runs = column[~np.isnan(column)]
        expected = stats.aggregate_mean([runs], np.random.default_rng(0))
        np.testing.assert_allclose(ends[:, epoch], expected[1:], rtol=1e-12)
