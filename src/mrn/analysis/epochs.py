"""The epochs by which the methods on a task are compared: after equally many episodes."""

import math

import numpy as np

from mrn.analysis.runs import Array, Run

Methods = dict[str, list[Run]]
"""The runs on a task, by method."""


def strides(methods: Methods) -> dict[str, int]:
    """How many of its epochs each method on a task needs for the episodes of a common epoch.

    Recipes differ in the episodes that they have in an epoch; methods can be compared only where
    each of them was evaluated. All 1 where no run has got that far, or nobody knows how long the
    epochs of one are.
    """
    lengths = {
        method: {episodes_per_epoch(run) for run in runs} for method, runs in methods.items()
    }
    every = set().union(*lengths.values())
    if 0 in every:
        return dict.fromkeys(methods, 1)
    common = math.lcm(*every)
    found = {method: common // max(own) for method, own in lengths.items()}
    reached = any(run.epochs >= found[run.method] for runs in methods.values() for run in runs)
    return found if reached else dict.fromkeys(methods, 1)


def lengths(methods: Methods) -> dict[str, set[int]]:
    """Episodes in a common epoch of each method's runs: one for all, where they are alike and have
    met; without those of which nobody knows."""  # noqa: D205, D209
    by = strides(methods)
    return {
        m: {by[m] * episodes_per_epoch(run) for run in runs} - {0} for m, runs in methods.items()
    }


def late(methods: Methods) -> Methods:
    """Runs of each method that are not yet at the end of the first common epoch."""
    by = strides(methods)
    return {m: [run for run in runs if run.epochs < by[m]] for m, runs in methods.items()}


def episodes_per_epoch(run: Run) -> int:
    """0 if nobody knows, or they are not equally many."""
    each = run.episodes / run.columns["epoch"]
    return int(each[0]) if (each == each[0]).all() and float(each[0]).is_integer() else 0


def curves(runs: list[Run]) -> Array:
    """Success per run and epoch, shape (runs, epochs); NaN where a run has not got that far."""
    table = np.full((len(runs), max(run.epochs for run in runs)), np.nan)
    for row, run in zip(table, runs, strict=True):
        row[: run.epochs] = run.success
    return table
