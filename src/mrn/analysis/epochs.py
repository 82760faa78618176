"""Common epochs: points at which the methods on a task have equal numbers of episodes."""

import math

import numpy as np

from mrn.analysis.run import Array, Run

Methods = dict[str, list[Run]]
"""The runs on a task, by method."""


def strides(methods: Methods) -> dict[str, int]:
    """Return how many epochs of each method make up one common epoch.

    Recipes differ in the number of episodes per epoch. Methods can be compared only at numbers of
    episodes where all of them were evaluated.

    Returns:
        A stride per method; all 1 if no run has finished a common epoch, or if the length of some
        run's epochs is unknown.
    """
    lengths = {
        method: {episodes_per_epoch(run) for run in runs} for method, runs in methods.items()
    }
    distinct = set().union(*lengths.values())
    if 0 in distinct:
        return dict.fromkeys(methods, 1)
    common = math.lcm(*distinct)
    found = {method: common // max(own) for method, own in lengths.items()}
    reached = any(run.epochs >= found[run.method] for runs in methods.values() for run in runs)
    return found if reached else dict.fromkeys(methods, 1)


def common_lengths(methods: Methods) -> dict[str, set[int]]:
    """Return the episodes per common epoch of each method's runs.

    All methods share one length if their epochs align. Unknown lengths are left out.
    """
    by = strides(methods)
    return {
        m: {by[m] * episodes_per_epoch(run) for run in runs} - {0} for m, runs in methods.items()
    }


def lagging_runs(methods: Methods) -> Methods:
    """Return the runs of each method that have not finished the first common epoch."""
    by = strides(methods)
    return {m: [run for run in runs if run.epochs < by[m]] for m, runs in methods.items()}


def episodes_per_epoch(run: Run) -> int:
    """Return the number of training episodes per epoch; 0 if it is unknown or varies."""
    each = run.episodes / run.columns["epoch"]
    return int(each[0]) if (each == each[0]).all() and float(each[0]).is_integer() else 0


def curves(runs: list[Run], column: str = "success") -> Array:
    """Return a column of the metrics, shape (runs, epochs); NaN where there is no value."""
    table = np.full((len(runs), max(run.epochs for run in runs)), np.nan)
    for row, run in zip(table, runs, strict=True):
        if column in run.columns:
            row[: run.epochs] = run.columns[column]
    return table


def mean_over_runs(values: list[Array]) -> Array:
    """Return the mean per epoch of sequences that may differ in length."""
    longest = max(map(len, values))
    padded = [np.append(each, np.full(longest - len(each), np.nan)) for each in values]
    return np.nanmean(padded, axis=0)
