"""The computed speed of several ranks."""

import json

import pytest

from benchmarks import ranks


def test_ring_all_reduce_matches_a_computation_by_hand():
    """In a ring of 4, each rank sends 6/4 MB at 1.25 GB/s, in 6 steps of 50 microseconds."""
    assert ranks._all_reduce(1e6, 4) == pytest.approx(1.5e6 / 1.25e9 + 300e-6)


def test_tables_have_a_row_per_candidate_and_number_of_ranks():
    tables = ranks.tables(json.loads(ranks.RESULTS.read_text()))
    assert [row[0] for row in tables["measured"][1]] == list(ranks.CANDIDATES)
    assert [int(row[0]) for row in tables["computed"][1]] == list(ranks.RANKS)
    assert tables["computed"][1][0][-1] == "1.0"


def test_communication_is_timed_on_the_methods_that_ranks_has():
    spent = ranks._time_communication(single := ranks.Ranks())
    assert {"all_reduce_mean", "all_gather", "all_reduce_sum"} <= vars(single).keys()
    assert spent == {"seconds": 0.0}
