"""Counts of what was tried, shown at the end of the test output."""

import pytest


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
