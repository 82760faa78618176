"""How many runs of each suite are published, and their cost: `python -m scripts.progress`."""

from pathlib import Path

from mrn.analysis.runs import find_runs
from mrn.utils.errors import report_errors
from mrn.utils.tables import Table, print_table
from scripts.studies import ROOT, find_studies, find_suites, run_place


def progress_table(results: Path) -> Table:
    """Return one row per suite. Core-hours count rollouts, updates and evaluations."""
    rows = []
    for study in find_studies(results):
        runs = {run_place(run, results): run for run in find_runs(study) if run.finished}
        for name, suite in find_suites(study).items():
            places = [f"{suite.folder}/{config.folder.as_posix()}" for config in suite.configs()]
            done = [runs[place] for place in places if place in runs]
            hours = sum(float(run.seconds[-1]) for run in done) / 3600  # one thread each
            cost = f"{hours:.1f}" if done else ""
            rows.append((f"{study.name}/{name}", f"{len(done)} of {len(places)}", cost))
    return ("suite", "runs", "core-hours"), rows


if __name__ == "__main__":
    with report_errors():
        print_table(progress_table(ROOT / "results"))
