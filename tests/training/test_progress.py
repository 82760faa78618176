"""Progress without a terminal."""

import pytest

from mrn.training import progress
from mrn.training.progress import TrainingProgress


@pytest.fixture
def clock(monkeypatch):
    """Return a list whose last number is the current time."""
    times = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: times[-1])
    return times


def test_log_has_a_line_per_minute_within_an_epoch(clock, capsys):
    with TrainingProgress("title", epochs=2, cycles=50, shown=True) as display:
        for cycle in range(1, 11):
            clock.append(cycle * 25.0)
            display.finish_cycle(1, cycle, 1234.0)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"epoch   1/2  cycle {cycle}/50  1,234 steps/s" for cycle in (3, 6, 9)
    ]  # after 75, 150 and 225 seconds


def test_hidden_progress_prints_nothing(clock, capsys):
    with TrainingProgress("title", epochs=2, cycles=50, shown=False) as display:
        clock.append(1000.0)
        display.finish_cycle(1, 1, 1234.0)
    assert capsys.readouterr().out == ""
