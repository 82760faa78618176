"""Counts of what was tried, shown at the end of the test output."""

import pytest

COUNTS: list[str] = []


@pytest.fixture
def count():
    """Call it with a line for the summary."""
    return COUNTS.append


def pytest_terminal_summary(terminalreporter):
    if COUNTS:
        terminalreporter.section("reliability")
        for line in COUNTS:
            terminalreporter.write_line(line)
