"""How far the suites of the evidence are, and what they have cost: `python -m benchmarks.evidence`.

From the runs that are kept in results/ into the page there; with the success of each run of some
tasks after each epoch, and what another processor changes.
"""

from pathlib import Path

from mrn.analysis.runs import Run, find_runs, group
from mrn.sweeps.suites import find_suite
from mrn.utils.errors import report_errors
from mrn.utils.naming import Method
from mrn.utils.tables import Table, print_table, write_sections

RESULTS = Path(__file__).parents[1] / "results"
SUITES = (
    "push",
    "hand",
    "forms-reach",
    "forms-push",
    "push-norms",
    "hand-longer",
    "hand-penalty",
    "pick-slide",
    "ablation",
    "all-tasks",
)
"""In the order in which they are trained."""
SHOWN = (
    ("FetchPush", "push", "FetchPush"),
    ("BlockRotateZ", "hand", "BlockRotateZ"),
    ("EggRotate", "hand", "EggRotate"),
    ("PenRotate", "hand", "PenRotate"),
    ("PenRotate-longer", "hand-longer", "PenRotate"),
    ("PenRotate-penalty", "hand-penalty", "PenRotate"),
    ("forms", "forms-push", "FetchPush"),
)
"""Sections of the page with every run of a suite on a task."""


def table(root: Path) -> Table:
    """A line for each suite."""
    rows = []
    for name in SUITES:
        suite = find_suite(str(root / "suites" / f"{name}.toml"))
        planned, folder = {config.folder for config in suite.configs()}, root / suite.folder
        there = find_runs(folder) if folder.is_dir() else []
        runs = [run for run in there if run.finished and _place(run, folder) in planned]
        hours = sum(float(run.seconds[-1]) for run in runs) / 3600  # of one thread each
        rows.append((f"`{name}`", f"{len(runs)} of {len(planned)}", f"{hours:.1f}" if runs else ""))
    return ("suite", "runs kept", "core-hours"), rows


def _place(run: Run, folder: Path) -> Path:
    return run.path.relative_to(folder).with_suffix("")


def curves(folder: Path, task: str) -> Table:
    """Success of each run of a suite on a task after each epoch."""
    methods = group(find_runs(folder))[""][task]
    return _curves("seed", [(str(run.seed), run) for runs in methods.values() for run in runs])


def processors(root: Path) -> Table:
    """Success after each epoch of the same settings and seed on either processor.

    Which one it was is known from the time of training: most of these runs' settings do not say it.
    """
    others = {(run.method, run.seed): run for run in find_runs(root / "push")}
    pairs = [(run, others[run.method, run.seed]) for run in find_runs(root / "fetch-push")]
    names = ("Intel Xeon", "AMD EPYC")
    return _curves("processor", [each for pair in pairs for each in zip(names, pair, strict=True)])


def _curves(what: str, runs: list[tuple[str, Run]]) -> Table:
    """A line for each run, in per cent, with what sets it apart from others of its critic."""
    rows = [
        (f"`{Method.parse(run.method).critic}`", name, *(f"{100 * s:.0f}" for s in run.success))
        for name, run in runs
    ]
    return ("critic", what, *map(str, range(1, len(rows[0]) - 1))), rows


def sections(root: Path) -> dict[str, Table]:
    """All that the page has of it."""
    shown = {name: curves(root / suite, task) for name, suite, task in SHOWN}
    return {"evidence": table(root), "processors": processors(root)} | shown


def main() -> None:
    """Write the tables, and show them."""
    with report_errors():
        found = sections(RESULTS)
        write_sections(RESULTS / "README.md", found)
        for each in found.values():
            print_table(each)


if __name__ == "__main__":
    main()
