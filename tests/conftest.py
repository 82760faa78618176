"""Test order, and summary lines of the reliability tests at the end of the output."""

from pathlib import Path

import pytest

# The slowest test files, slowest first. An idle pytest worker takes tests from the end of another
# worker's queue, so slow tests must start early for all workers to finish together.
SLOWEST = (
    "sweeps/test_ray.py",
    "sweeps/test_real_sweeps.py",
    "sweeps/test_algorithms.py",
    "reliability/test_kill.py",
    "reliability/test_damage.py",
    "examples/test_notebook.py",
    "examples/test_examples.py",
    "reliability/test_signals.py",
    "reliability/test_guards.py",
    "studies/test_toy.py",
)


def pytest_collection_modifyitems(items):
    ranks = {Path(__file__).parent / name: rank for rank, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: ranks.get(item.path, len(SLOWEST)))  # stable for all others


@pytest.fixture
def count(record_property):
    """Return a function that adds a line to the summary."""
    return lambda line: record_property("tried", line)


def pytest_terminal_summary(terminalreporter):
    reports = terminalreporter.stats.get("passed", [])
    lines = [line for report in reports for name, line in report.user_properties if name == "tried"]
    if lines:
        terminalreporter.section("reliability")
        for line in lines:
            terminalreporter.write_line(line)
