"""Tables of the study fast-recipe: when a task is solved, and what each ingredient contributes.

A task counts as solved when the mean over seeds first reaches 90% (FetchReach: 95%). Settings were
tuned on seeds 100 to 300, not on 400 and 500.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.recipe_cycles import CANDIDATES
from mrn.analysis.epochs import curves
from mrn.analysis.run import Array, Run
from mrn.analysis.runs import find_runs, group
from mrn.analysis.statistics import TIE_TOLERANCE
from mrn.config import Config
from mrn.utils.errors import UserError
from mrn.utils.tables import Table, markdown_table

ABLATION = "ablation"
"""Folder of the ablation within the study."""
TASK = "FetchPush"
"""Task of the ablation."""
PAPER, FAST = "ddpg-mrn", "ddpg-mrn+fast"
"""MRN's methods with both recipes."""
MARKS = (25_000, 50_000, 75_000, 100_000)
"""Environment steps at which the runs of all variants were evaluated."""
SOLVED, SOLVED_BY_TASK = 0.9, {"FetchReach": 0.95}
LEVELS = (0.25, 0.5, 0.75, 0.9)
TUNED, HELD_OUT = (100, 200, 300), (400, 500)
WINDOW = 50_000
"""Environment steps after solving a task over which success is averaged."""


class Solved(NamedTuple):
    """When the mean over seeds first reached a level. Times exclude evaluations."""

    steps: int
    updates: int
    minutes: float
    """Mean over seeds of the time for rollouts and updates."""
    afterwards: float
    """Mean success over the following evaluations; NaN without any."""


def time_to_level(runs: list[Run], level: float, interval: int = 1) -> Solved | None:
    """Return when runs with the same settings reached a level; None if they did not.

    Args:
        runs: The runs.
        level: Mean success over the runs.
        interval: Only evaluations after multiples of these steps count.
    """
    steps, mean = _mean_curve(runs)
    counts = steps % interval == 0
    # A mean of shares has rounding errors.
    reached = np.flatnonzero((mean > level - TIE_TOLERANCE) & counts)
    if not len(reached):
        return None
    first = reached[0]
    spent = [run.columns["rollout_seconds"] + run.columns["update_seconds"] for run in runs]
    later = (steps > steps[first]) & (steps <= steps[first] + WINDOW)
    return Solved(
        int(steps[first]),
        int(runs[0].columns["updates"][first]),
        float(np.mean([seconds[: first + 1].sum() for seconds in spent])) / 60,
        float(mean[later].mean()) if later.any() else float("nan"),
    )


def _mean_curve(runs: list[Run]) -> tuple[Array, Array]:
    """Return environment steps and mean success, for the epochs that all runs have."""
    epochs = min(run.epochs for run in runs)
    return runs[0].columns["env_steps"][:epochs], curves(runs)[:, :epochs].mean(axis=0)


def solved_table(study: Path) -> Table:
    """Return one row per task, method and group of seeds."""
    heads = ("task", "method", "seeds", "level", "steps", "updates", "minutes")
    heads += (f"next {WINDOW:,} steps", "final success")
    rows = []
    for task, methods in _main_runs(study).items():
        level = SOLVED_BY_TASK.get(task, SOLVED)
        for method, every in methods.items():
            for runs in _split_seeds(every):
                cells = (task, method.partition("-")[2], _seeds(runs), f"{level:.0%}")
                rows.append((*cells, *_solved_cells(time_to_level(runs, level)), _final(runs)))
    return heads, rows


def _main_runs(study: Path) -> dict[str, dict[str, list[Run]]]:
    return group(find_runs(study)).get("", {})


def _solved_cells(solved: Solved | None) -> tuple[str, ...]:
    if solved is None:
        return ("not reached", "", "", "")
    later = "" if np.isnan(solved.afterwards) else f"{solved.afterwards:.1%}"
    return f"{solved.steps:,}", f"{solved.updates:,}", f"{solved.minutes:.1f}", later


def _final(runs: list[Run]) -> str:
    steps, mean = _mean_curve(runs)
    return f"{mean[-1]:.1%} after {int(steps[-1]):,}"


def level_table(study: Path) -> Table:
    """Return the steps until the mean over seeds reaches a level, for both recipes with MRN.

    The recipe that is evaluated more often would reach it earlier, so only evaluations after the
    longer interval count.
    """
    heads = ("task", "seeds", "success", "steps, paper", "steps, fast", "ratio")
    rows = []
    for task, paper, fast in _paired_runs(study):
        interval = max(int(_mean_curve(runs)[0][0]) for runs in (paper, fast))
        for level in LEVELS:
            times = [time_to_level(runs, level, interval) for runs in (paper, fast)]
            if any(times):
                steps = (f"{each.steps:,}" if each else "not reached" for each in times)
                slow, quick = times
                ratio = f"{quick.steps / slow.steps:.2f}" if slow and quick else ""
                rows.append((task, _seeds(paper), f"{level:.0%}", *steps, ratio))
    return heads, rows


def _paired_runs(study: Path) -> Iterator[tuple[str, list[Run], list[Run]]]:
    """Yield each task with its runs of both recipes, for the seeds that both have."""
    for task, methods in _main_runs(study).items():
        pair = [methods.get(method, []) for method in (PAPER, FAST)]
        shared = set.intersection(*({run.seed for run in runs} for runs in pair))
        if shared:
            yield task, *([run for run in runs if run.seed in shared] for runs in pair)


def ablation_table(study: Path) -> Table:
    """Return one row per variant of the recipe and group of seeds."""
    heads = ("variant", "seeds", *(f"{steps:,} steps" for steps in MARKS))
    heads += ("seeds at the last", f"steps to {SOLVED:.0%}")
    rows = []
    for method, every in group(find_runs(study)).get(ABLATION, {}).get(TASK, {}).items():
        name = method.removeprefix(FAST).removeprefix("+") or "fast"
        for runs in _split_seeds(every):
            success = np.array([_success_at_marks(run) for run in runs])
            means = (f"{value:.1%}" for value in success.mean(axis=0))
            each = ", ".join(f"{value:.0%}" for value in success[:, -1])
            solved = time_to_level(runs, SOLVED)
            reached = f"{solved.steps:,}" if solved else "not reached"
            rows.append((name, _seeds(runs), *means, each, reached))
    return heads, rows


def _split_seeds(runs: list[Run]) -> list[list[Run]]:
    """Split runs into tuned and held-out seeds, without empty groups."""
    groups = ([run for run in runs if run.seed in seeds] for seeds in (TUNED, HELD_OUT))
    return [each for each in groups if each]


def _seeds(runs: list[Run]) -> str:
    return ", ".join(str(run.seed) for run in runs)


def _success_at_marks(run: Run) -> list[float]:
    steps = run.columns["env_steps"].tolist()
    if missing := sorted(set(MARKS) - set(steps)):
        raise UserError(f"{run.path} was not evaluated after {missing[0]:,} steps")
    return [run.columns["success"][steps.index(mark)] for mark in MARKS]


def minutes_section(study: Path, times: dict[str, Any]) -> str:
    """Return the minutes to solve FetchPush as Markdown, from `benchmarks.recipe_cycles`."""
    table = minutes_table(study, times["seconds"])
    return f"{times['cpu']}, one thread:\n\n{markdown_table(table)}"


def minutes_table(study: Path, seconds: dict[str, list[float]]) -> Table:
    """Return cycles until FetchPush is solved, seconds per cycle, and their product.

    Raises:
        UserError: Runs are missing, or did not solve the task.
    """
    heads = ("recipe", "steps", "cycles", "seconds per cycle", "minutes", "ratio")
    groups = group(find_runs(study))
    rows, baseline = [], None
    for name, settings in CANDIDATES.items():
        method = {"paper": PAPER, "fast": FAST}.get(name, f"{FAST}+{name}")
        place = "" if method in (PAPER, FAST) else ABLATION
        runs = groups.get(place, {}).get(TASK, {}).get(method, [])
        runs = [run for run in runs if run.seed in TUNED]
        solved = time_to_level(runs, SOLVED) if runs else None
        if solved is None:
            raise UserError(f"{study}: no runs of {method} that reach {SOLVED:.0%} on {TASK}")
        gradient_steps = Config.of(TASK, **settings).schedule.gradient_steps
        cycles, (median, low, high) = solved.updates // gradient_steps, seconds[name]
        minutes = cycles * median / 60
        baseline = baseline or minutes
        cells = (f"{solved.steps:,}", str(cycles), f"{median:.2f} ({low:.2f} - {high:.2f})")
        label = name if name in ("paper", "fast") else f"fast, {name}"
        rows.append((label, *cells, f"{minutes:.1f}", f"{minutes / baseline:.2f}"))
    return heads, rows
