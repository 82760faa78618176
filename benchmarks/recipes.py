"""When a task is solved, the recipe fast beside the paper's, and what each of its parts is worth.

`python -m benchmarks.recipes` after `mrn figures runs/fast -o results/fast`, and the same for
fast-ablation: from their runs into the page. What counts is the mean over seeds: where it is first
at 90 %, and how it goes on from there. Settings were chosen with seeds 100 to 300, none with 400
and 500.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mrn.analysis.epochs import curves
from mrn.analysis.runs import Array, Run, find_runs, group
from mrn.analysis.statistics import TIE_TOLERANCE
from mrn.analysis.summary import short_names
from mrn.utils.errors import UserError, report_errors
from mrn.utils.tables import Table, print_table, write_sections

RESULTS = Path(__file__).parents[1] / "results" / "fast"
ABLATION = RESULTS.parent / "fast-ablation"
TASK = "FetchPush"
"""On which ingredients are left out."""
BY_PAPER, BY_FAST = "ddpg-mrn", "ddpg-mrn+fast"
"""The critic mrn by both recipes, as its runs name it."""
SLOW_TARGETS = "target_update_interval=0"
"""The ablation whose targets move as the paper's do."""
MARKS = (25_000, 50_000, 75_000, 100_000)
"""Environment steps at which runs of all ablations were evaluated."""
LEVELS = {"FetchReach": 0.95}
USUAL_LEVEL = 0.9
ON_THE_WAY = (0.25, 0.5, 0.75, 0.9)
"""Levels of success up to which the steps of both recipes are compared."""
CHOSEN_ON, HELD_OUT = (100, 200, 300), (400, 500)
AFTERWARDS = 50_000
"""Environment steps over which success is watched after a task is solved."""


class Solved(NamedTuple):
    """Where the mean over seeds was first high enough, evaluations not counted in the time."""

    steps: int
    updates: int
    minutes: float
    """Mean over seeds, of playing and learning."""
    afterwards: float
    """Mean success over the evaluations of the steps that follow; NaN if there are none."""


def solved(runs: list[Run], level: float) -> Solved | None:
    """Where runs of the same settings had solved their task; None if they had not."""
    steps, mean = _mean(runs)
    places = np.flatnonzero(mean > level - TIE_TOLERANCE)  # a mean of shares may miss it by a digit
    if not len(places):
        return None
    place = places[0]
    spent = [run.columns["rollout_seconds"] + run.columns["update_seconds"] for run in runs]
    later = (steps > steps[place]) & (steps <= steps[place] + AFTERWARDS)
    return Solved(
        int(steps[place]),
        int(runs[0].columns["updates"][place]),
        float(np.mean([seconds[: place + 1].sum() for seconds in spent])) / 60,
        float(mean[later].mean()) if later.any() else float("nan"),
    )


def _mean(runs: list[Run]) -> tuple[Array, Array]:
    """Environment steps and the mean success over seeds, as far as all runs go."""
    epochs = min(run.epochs for run in runs)
    return runs[0].columns["env_steps"][:epochs], curves(runs)[:, :epochs].mean(axis=0)


def table(root: Path) -> Table:
    """A line for each task, method and group of seeds."""
    heads = ("task", "method", "seeds", "level", "steps", "updates", "minutes")
    heads += (f"next {AFTERWARDS:,} steps", "success at the end")
    rows = []
    for tasks in group(find_runs(root)).values():
        for task, methods in tasks.items():
            level = LEVELS.get(task, USUAL_LEVEL)
            names = short_names(list(methods))
            for method, every in methods.items():
                for runs in _groups(every):
                    place = (task, names[method], _seeds(runs), f"{level:.0%}")
                    rows.append((*place, *_cells(solved(runs, level)), _end(runs)))
    return heads, rows


def _cells(found: Solved | None) -> tuple[str, ...]:
    if found is None:
        return ("not reached", "", "", "")
    later = "" if np.isnan(found.afterwards) else f"{found.afterwards:.1%}"
    return f"{found.steps:,}", f"{found.updates:,}", f"{found.minutes:.1f}", later


def _end(runs: list[Run]) -> str:
    steps, mean = _mean(runs)
    return f"{mean[-1]:.1%} after {int(steps[-1]):,}"


def levels_table(root: Path) -> Table:
    """Steps until the mean over seeds is at a level, by both recipes with mrn."""
    heads = ("task", "seeds", "success", "steps, paper", "steps, fast", "ratio")
    rows = []
    for task, paper, fast in _both(root):
        for level in ON_THE_WAY:
            found = [solved(runs, level) for runs in (paper, fast)]
            if any(found):
                steps = (f"{each.steps:,}" if each else "not reached" for each in found)
                slow, soon = found
                ratio = f"{soon.steps / slow.steps:.2f}" if slow and soon else ""
                rows.append((task, _seeds(paper), f"{level:.0%}", *steps, ratio))
    return heads, rows


def equal_table(root: Path, without: Path) -> Table:
    """Success after the same steps, mean over seeds: by both recipes, and by fast without one part.

    That part is the fast targets, which are worth most on FetchPush, and harm on BlockRotateZ.
    """
    heads = ("task", "seeds", "steps", "paper", "fast", f"fast, {SLOW_TARGETS}")
    every = find_runs(root) + find_runs(without)
    slowed = [run for run in every if run.method == f"{BY_FAST}+{SLOW_TARGETS}"]
    rows = []
    for task, paper, fast in _both(root):
        seeds = {run.seed for run in paper}
        third = [run for run in slowed if run.task == task and run.seed in seeds]
        means = [
            dict(zip(*_mean(runs), strict=True)) if len(runs) == len(seeds) else {}
            for runs in (paper, fast, third)
        ]
        for steps in sorted(means[0].keys() & means[1].keys()):
            cells = (f"{mean[steps]:.1%}" if steps in mean else "" for mean in means)
            rows.append((task, _seeds(paper), f"{int(steps):,}", *cells))
    return heads, rows


def _both(root: Path) -> Iterator[tuple[str, list[Run], list[Run]]]:
    """Each task with its runs by the paper's recipe and by fast, of those seeds that both have."""
    for tasks in group(find_runs(root)).values():
        for task, methods in tasks.items():
            every = [methods.get(method, []) for method in (BY_PAPER, BY_FAST)]
            shared = set.intersection(*({run.seed for run in runs} for runs in every))
            if shared:
                yield task, *([run for run in runs if run.seed in shared] for runs in every)


def runs_on_task(root: Path, *needed: str) -> dict[str, list[Run]]:
    """The runs on the task of the ablations by method.

    Raises:
        UserError: There are none of a method that is needed.
    """
    methods = group(find_runs(root)).get("", {}).get(TASK, {})
    for method in needed:
        if method not in methods:
            raise UserError(
                f"{root} has no runs of {method} on {TASK}: `mrn figures RUNS -o {root}` puts "
                "them there"
            )
    return methods


def ablation_table(whole: Path, without: Path) -> Table:
    """A line for the recipe on its task, and for it with each setting that is the paper's."""
    heads = ("recipe", "seeds", *(f"{steps:,} steps" for steps in MARKS))
    heads += ("each at the last", f"{USUAL_LEVEL:.0%} after")
    methods = {BY_FAST: runs_on_task(whole, BY_FAST)[BY_FAST]} | runs_on_task(without)
    rows = []
    for method, every in methods.items():
        name = method.removeprefix(BY_FAST).removeprefix("+") or "fast"
        for runs in _groups(every):
            success = np.array([_at_marks(run) for run in runs])
            means = (f"{value:.1%}" for value in success.mean(axis=0))
            each = ", ".join(f"{value:.0%}" for value in success[:, -1])
            place = solved(runs, USUAL_LEVEL)
            reached = f"{place.steps:,}" if place else "not reached"
            rows.append((name, _seeds(runs), *means, each, reached))
    return heads, rows


def _groups(runs: list[Run]) -> list[list[Run]]:
    """Runs with seeds that were looked at while settings were chosen, and others; none is empty."""
    groups = ([run for run in runs if run.seed in seeds] for seeds in (CHOSEN_ON, HELD_OUT))
    return [each for each in groups if each]


def _seeds(runs: list[Run]) -> str:
    return ", ".join(str(run.seed) for run in runs)


def _at_marks(run: Run) -> list[float]:
    steps = run.columns["env_steps"].tolist()
    if missing := sorted(set(MARKS) - set(steps)):
        raise UserError(f"{run.path} was not evaluated after {missing[0]:,} steps")
    return [run.columns["success"][steps.index(mark)] for mark in MARKS]


def sections() -> dict[str, Table]:
    """All tables of the page, by the names of their places."""
    return {
        "solved": table(RESULTS),
        "levels": levels_table(RESULTS),
        "equal": equal_table(RESULTS, ABLATION),
        "ablation": ablation_table(RESULTS, ABLATION),
    }


def main() -> None:
    """Print the tables, and write them into the page."""
    with report_errors():
        found = sections()
        for each in found.values():
            print_table(each)
        write_sections(RESULTS / "README.md", found)


if __name__ == "__main__":
    main()
