"""Metrics: when a run is finished."""

import math

import pytest

from mrn.runs.metrics import is_finished, reached_stop_at


def rows(*rates: float | None) -> list[dict[str, float | None]]:
    return [{"success": rate} for rate in rates]


@pytest.mark.parametrize(
    ("rates", "epochs", "stop_at", "expected"),
    [
        ([], 3, None, False),
        ([], None, None, False),
        ([], 3, 0.0, False),
        ([0.1, 0.2], 3, None, False),
        ([0.1, 0.2, 0.3], 3, None, True),
        ([0.1, 0.2, 0.3, 0.4], 3, None, True),
        ([None, None], 2, None, True),  # never evaluated
        ([0.1], None, None, True),  # the number of epochs is unknown
        ([0.1, 0.9], 3, 0.9, True),
        ([0.9, 0.1], 3, 0.9, True),  # an earlier epoch counts
        ([0.1, 0.8], 3, 0.9, False),
        ([None], 3, 0.9, False),
        ([math.nan], 3, 0.0, False),
    ],
)
def test_is_finished(rates, epochs, stop_at, expected):
    assert is_finished(rows(*rates), epochs, stop_at) is expected


def test_without_stop_at_no_success_rate_stops_a_run():
    assert not reached_stop_at({"success": 1.0}, None)
    assert reached_stop_at({"success": 1.0}, 1.0)
