"""Update times of both precisions."""

import json

from benchmarks import precision


def test_table_shows_both_times_and_the_speedup():
    heads, rows = precision.table("critic", {"mrn": {"float32": 50.0, "bfloat16": 20.0}})
    assert heads == ("critic", "ms in float32", "ms in bfloat16", "speedup")
    assert rows == [("mrn", "50.0", "20.0", "2.5")]


def test_bfloat16_is_faster_for_all_measured_critics_and_algorithms():
    stored = json.loads(precision.RESULTS.read_text())
    assert len(stored["critic with ddpg"]) >= 15
    assert len(stored["algorithm with its default critic"]) >= 5
    for kind, times in stored.items():
        if kind != "machine":
            assert all(each["bfloat16"] < each["float32"] for each in times.values())
