"""How far the suites of the evidence are, and what they have cost: `python -m benchmarks.evidence`.

From the runs that are kept in results/ into the page there; and what another processor changes.
"""

from pathlib import Path

from mrn.errors import reported
from mrn.experiments.runs import find_runs
from mrn.experiments.suites import find_suite
from mrn.naming import Method
from mrn.tables import Table, show, write_sections

RESULTS = Path(__file__).parents[1] / "results"
SUITES = ("push", "hand", "forms-reach", "forms-push", "pick-slide", "ablation", "all-tasks")
"""In the order in which they are trained."""


def table(root: Path) -> Table:
    """A line for each suite."""
    rows = []
    for name in SUITES:
        file, folder = root / "suites" / f"{name}.toml", root / name
        runs = [run for run in find_runs(folder) if run.finished] if folder.is_dir() else []
        hours = sum(float(run.seconds[-1]) for run in runs) / 3600  # of one thread each
        planned = len(find_suite(str(file)).configs())
        rows.append((f"`{name}`", f"{len(runs)} of {planned}", f"{hours:.1f}" if runs else ""))
    return ("suite", "runs kept", "core-hours"), rows


def processors(root: Path) -> Table:
    """Success after each epoch of the same settings and seed, in per cent, on either processor."""
    rows = []
    others = {(run.method, run.seed): run for run in find_runs(root / "push")}
    for run in find_runs(root / "fetch-push"):
        other = others[run.method, run.seed]
        for name, curve in (("Intel Xeon", run.success), ("AMD EPYC", other.success)):
            percent = (f"{100 * success:.0f}" for success in curve)
            rows.append((f"`{Method.parse(run.method).critic}`", name, *percent))
    return ("critic", "processor", *map(str, range(1, len(rows[0]) - 1))), rows


def main() -> None:
    """Write the tables, and show them."""
    with reported():
        found = {"evidence": table(RESULTS), "processors": processors(RESULTS)}
        write_sections(RESULTS / "README.md", found)
        for each in found.values():
            show(each)


if __name__ == "__main__":
    main()
