"""The order of the tests, and counts of what was tried, shown at the end of the test output."""

from pathlib import Path

import pytest

# What takes longest, longest first. A process of pytest that has nothing left takes over from the
# end of another's list, so that what is long has to begin early for both to end together.
FIRST = (
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
    places = {Path(__file__).parent / name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: places.get(item.path, len(FIRST)))  # else as they were


@pytest.fixture
def count(record_property):
    """Call it with a line for the summary."""
    return lambda line: record_property("tried", line)


def pytest_terminal_summary(terminalreporter):
    reports = terminalreporter.stats.get("passed", [])
    lines = [line for report in reports for name, line in report.user_properties if name == "tried"]
    if lines:
        terminalreporter.section("reliability")
        for line in lines:
            terminalreporter.write_line(line)
