"""Update times of both precisions."""

import json

from benchmarks import precision
from mrn.algorithms import ALGORITHMS
from mrn.critics import CRITICS


def test_table_shows_both_times_and_the_speedup():
    heads, rows = precision.table(
        {
            "mrn": {"sac": {"float32": 50.0, "bfloat16": 20.0}},
            "none": {"gcsl": {"float32": 9.0, "bfloat16": 6.0}},
        }
    )
    assert heads[1:] == tuple(ALGORITHMS)
    assert rows == [
        ("mrn", "", "", "50.0, 20.0, 2.5", "", ""),
        ("none", "", "", "", "9.0, 6.0, 1.5", ""),
    ]


def test_stored_results_have_all_algorithms_and_critics_and_bfloat16_is_faster():
    stored = json.loads(precision.RESULTS.read_text())["update_ms"]
    with_critic = {algo for algo, kind in ALGORITHMS.items() if kind.uses_critic}
    assert set(stored) == {*CRITICS, "none"}
    assert all(set(stored[critic]) == with_critic for critic in CRITICS)
    assert set(stored["none"]) == set(ALGORITHMS) - with_critic
    for by_algo in stored.values():
        assert all(times["bfloat16"] < times["float32"] for times in by_algo.values())
