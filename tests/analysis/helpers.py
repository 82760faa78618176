"""Runs for the tests of the analysis, and their summaries."""

from mrn.analysis.runs import find_runs, group
from mrn.analysis.summary import summarize

SHORT = [0.1, 0.3, 0.5]


def summary_of(root):
    return summarize(group(find_runs(root))[""])


def rows_of(root):
    return {row.method: row for row in summary_of(root).rows}


def tasks_of(root):
    return group(find_runs(root))[""].items()
