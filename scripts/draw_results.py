"""Redraw figures and tables of all studies, then update the pages: `make results`."""

import json
import warnings
from pathlib import Path

from mrn.analysis.figures import draw_figures
from mrn.analysis.runs import find_runs
from mrn.utils.errors import report_errors
from mrn.utils.files import write_atomically
from scripts.pages import update_pages
from scripts.studies import DIGESTS, ROOT, digest_runs, find_studies


def draw_study(study: Path) -> None:
    """Draw the figures and tables of a study, without the PDF copies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tables repeat the warnings
        written = draw_figures(study, study)
    for path in written:
        if path.suffix == ".pdf":
            path.unlink()


def run_digests(results: Path) -> dict[str, str]:
    """Return a digest of the runs of each experiment, by its folder in results/."""
    digests = {}
    for study in find_studies(results):
        experiments: dict[str, list] = {}
        for run in find_runs(study):
            experiments.setdefault(run.experiment, []).append(run)
        for name, runs in sorted(experiments.items()):
            digests[f"{study.name}/{name}".rstrip("/")] = digest_runs(runs, study)
    return digests


def main(root: Path) -> None:
    """Draw all studies and update all pages."""
    for study in find_studies(root / "results"):
        draw_study(study)
        print(f"drew {study.relative_to(root)}")
    digests = json.dumps(run_digests(root / "results"), indent=2) + "\n"
    write_atomically(root / "results" / DIGESTS, digests.encode())
    update_pages(root)


if __name__ == "__main__":
    with report_errors():
        main(ROOT)
