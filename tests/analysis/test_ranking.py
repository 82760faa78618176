"""The best method is marked only if the runs allow it."""

import itertools

from mrn.analysis.ranking import MEASURES, best_row, pairwise, rankable
from mrn.analysis.summary import rows_of_choices
from mrn.analysis.tables import format_cost, markdown
from tests.analysis.helpers import rows_of, summary_of, tasks_of
from tests.sweeps.helpers import write_run


def test_single_seed_is_not_ranked(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path, [0.5, 0.9], seed)
    write_run(tmp_path, [0.1, 0.2], 1, critic="bvn")
    summary = summary_of(tmp_path)
    assert not any(row.best for row in summary.rows)
    assert [each.improvement for each in summary.aggregates] == [None, None]
    write_run(tmp_path, [0.1, 0.3], 2, critic="bvn")
    write_run(tmp_path, [0.5, 0.9], 3)
    write_run(tmp_path, [0.1, 0.25], 3, critic="bvn")
    summary = summary_of(tmp_path)
    assert [row.method for row in summary.rows if row.best] == ["ddpg-mrn"]
    assert summary.aggregates[1].improvement.value == 1.0


def test_stopped_method_does_not_prevent_comparing_others(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path, [0.5, 0.9], seed)
        write_run(tmp_path, [0.1, 0.2], seed, critic="bvn")
        write_run(tmp_path, [0.1, 0.95], seed, critic="iqe", epochs=9, stop_at=0.9)
    rows = rows_of(tmp_path)
    assert not any(row.best for row in rows.values())
    assert rows["ddpg-bvn"].improvement.value == 1
    assert rows["ddpg-iqe"].improvement is None
    assert [row.stopped for row in rows.values()] == [False, False, True]
    assert summary_of(tmp_path).tasks == ()


def test_best_needs_an_interval_of_the_difference_above_zero(tmp_path):
    for seed, (one, other) in enumerate([(0.7, 0.6), (0.9, 0.7), (0.8, 0.8)]):
        write_run(tmp_path, [one], seed)
        write_run(tmp_path, [other], seed, critic="bvn")
        write_run(tmp_path, [0.1 * one], seed, critic="dn")
    assert not any(row.best for row in rows_of(tmp_path).values())  # MRN leads by 10 points
    assert "Bold" not in markdown(summary_of(tmp_path))
    for seed in range(3, 20):  # with more seeds, the lead is clear
        write_run(tmp_path, [0.8 + 0.01 * (seed % 3)], seed)
        write_run(tmp_path, [0.7 + 0.01 * (seed % 3)], seed, critic="bvn")
    assert [method for method, row in rows_of(tmp_path).items() if row.best] == ["ddpg-mrn"]
    assert "Bold: better than each other method" in markdown(summary_of(tmp_path))


def test_two_equal_seeds_are_not_the_best(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path, [0.9], seed)
        write_run(tmp_path, [0.8], seed, critic="bvn")
    assert not any(row.best for row in rows_of(tmp_path).values())


def test_pairwise_ranking_decides_every_selection(tmp_path):
    """The page ranks any selection of methods by pairs only."""
    curves = {"mrn": [0.5, 0.6], "bvn": [0.6, 0.6], "dn": [0.1, 0.2], "wn": [0.9, 0.95]}
    for seed, (critic, curve) in itertools.product((1, 2, 3, 4), curves.items()):
        stop = {"epochs": 9, "stop_at": 0.9} if critic == "wn" else {}
        write_run(tmp_path, curve, seed, critic=critic, **stop)
    write_run(tmp_path, [0.7, 0.8], 1, critic="iqe")  # a single seed
    for seed in (1, 2):
        write_run(tmp_path, [0.3] * 8, seed, critic="pqe", recipe="fast")
    (place,) = tasks_of(tmp_path)
    rows = [row for row in rows_of_choices(*place) if row.epochs == 2]
    assert len(rows) == 6
    against = {row.method: pairwise(row, rows) for row in rows}
    decided = 0
    for size, measure in itertools.product(range(2, 7), MEASURES):
        for chosen in itertools.combinations(rows, size):
            pairs = [(one, other) for one in chosen for other in chosen if one is not other]
            known = {
                (a.method, b.method): against[a.method][measure].get(b.method) for a, b in pairs
            }
            ranked = None not in known.values()
            assert ranked == rankable(chosen)
            best = [
                row
                for row in chosen
                if ranked and all(won for (one, _), won in known.items() if one == row.method)
            ]
            expected = best_row(chosen, measure)
            assert best == ([expected] if expected else [])
            decided += bool(best)
    assert decided > 5


def test_stopped_runs_are_finished_and_not_ranked(tmp_path):
    """The first run to stop ends the comparison, at the success it stopped for."""
    for seed, curve in enumerate([[0.95], [0.1, 0.5, 0.95]]):
        write_run(tmp_path, curve, seed, epochs=9, stop_at=0.9)
        write_run(tmp_path, [0.1, 0.92], seed, epochs=9, stop_at=0.9, critic="bvn")
    rows = rows_of(tmp_path)
    assert rows["ddpg-mrn"].epochs_to == (1.5, 2)
    assert format_cost(rows["ddpg-mrn"], 1) == format_cost(rows["ddpg-bvn"], 1) == "2,000"
    assert all(row.complete for row in rows.values())
    assert not any(row.best or row.improvement for row in rows.values())
    assert "runs stopped early at `stop_at`" in markdown(summary_of(tmp_path))
    # Reaching stop_at in the last epoch is not stopping early.
    for seed in (1, 2, 3):
        write_run(tmp_path / "last", [0.1, 0.2, 0.95], seed, stop_at=0.9)
        write_run(tmp_path / "last", [0.1, 0.2, 0.3], seed, stop_at=0.9, critic="bvn")
        write_run(tmp_path / "low", [0.1, 0.6], seed, stop_at=0.6, epochs=9)
    assert [row.best for row in rows_of(tmp_path / "last").values()] == [True, False]
    assert format_cost(rows_of(tmp_path / "low")["ddpg-mrn"], 1) == "unknown"
