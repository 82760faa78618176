"""Test order, and summary lines of the reliability tests at the end of the output."""

import itertools
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.reliability.hostile.cases import SEED

# The slowest test files, slowest first. An idle pytest worker takes tests from the end of another
# worker's queue, so slow tests must start early for all workers to finish together.
SLOWEST = (
    "sweeps/test_ray.py",
    "sweeps/test_real_sweeps.py",
    "sweeps/test_algorithms.py",
    "sweeps/test_real_tune.py",
    "reliability/test_kill.py",
    "reliability/hostile/test_files.py",
    "reliability/hostile/test_kills.py",
    "reliability/test_damage.py",
    "examples/test_notebook.py",
    "examples/test_examples.py",
    "reliability/test_signals.py",
    "reliability/test_guards.py",
    "studies/test_toy.py",
)


def pytest_configure():
    # Under nohup, commands would ignore SIGHUP, which tests send to them.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(items):
    ranks = {Path(__file__).parent / name: rank for rank, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: ranks.get(item.path, len(SLOWEST)))  # stable for all others


@pytest.fixture
def count(record_property):
    """Return a function that adds a line to the summary."""
    return lambda line: record_property("tried", line)


@pytest.fixture
def tally(record_property):
    """Return a function that counts an outcome under a title; the summary has the totals."""
    return lambda title, outcome: record_property("tally", (title, outcome))


def pytest_terminal_summary(terminalreporter):
    stats = terminalreporter.stats
    found = [each for report in stats.get("passed", []) for each in report.user_properties]
    lines = [line for name, line in found if name == "tried"]
    tallies = Counter(tuple(outcome) for name, outcome in found if name == "tally")
    for title, group in itertools.groupby(sorted(tallies.items()), lambda item: item[0][0]):
        counts = {outcome: number for (_, outcome), number in group}
        parts = ", ".join(f"{outcome} {number:,}" for outcome, number in counts.items())
        lines.append(f"{title}: {sum(counts.values()):,} ({parts})")
    for report in (*stats.get("failed", []), *stats.get("error", [])):
        if "/hostile/" in report.nodeid:
            again = f"python -m pytest -m '' '{report.nodeid}'"
            lines.append(f"repeat a failure: HOSTILE_SEED={SEED} {again}")
    if lines:
        terminalreporter.section("reliability")
        for line in lines:
            terminalreporter.write_line(line)
