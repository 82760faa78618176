"""The studies in results/: their suites, runs and stored tables."""

import hashlib
import json
from pathlib import Path

from mrn.analysis.run import Run
from mrn.analysis.runs import find_runs, group
from mrn.analysis.summary import Summary, summarize
from mrn.config import Config
from mrn.sweeps.suites import Suite, find_suite
from mrn.utils.files import write_atomically
from mrn.utils.tables import Table

ROOT = Path(__file__).parents[1]
DIGESTS = "figures.json"
"""File in results/ with a digest of the runs that each folder of figures was drawn from."""


def find_studies(results: Path) -> list[Path]:
    """Return the folders in results/ that have a page."""
    return sorted(page.parent for page in results.glob("*/README.md"))


def find_suites(study: Path) -> dict[str, Suite]:
    """Return the suites of a study by file name."""
    return {path.name: find_suite(str(path)) for path in sorted(study.glob("*.toml"))}


def planned_runs(study: Path) -> dict[str, Config]:
    """Return the settings of all runs of a study's suites, by their place in results/."""
    return {
        f"{suite.folder}/{config.folder.as_posix()}": config
        for suite in find_suites(study).values()
        for config in suite.configs()
    }


def run_place(run: Run, results: Path) -> str:
    """Return the place of a run in results/, without the suffix of its files."""
    return run.path.relative_to(results).with_suffix("").as_posix()


def summarize_study(study: Path) -> dict[str, Summary]:
    """Return a summary per experiment; that of the runs directly in the study is named ""."""
    return {name: summarize(tasks) for name, tasks in group(find_runs(study)).items()}


def digest_runs(runs: list[Run], study: Path) -> str:
    """Return a hash of the metrics that figures are drawn from."""
    digest = hashlib.sha256()
    for run in sorted(runs, key=lambda run: run.path):
        digest.update(run.path.relative_to(study).as_posix().encode())
        digest.update(run.metrics_file.read_bytes())
    return digest.hexdigest()


def write_table(path: Path, table: Table) -> None:
    """Store a measured table as JSON."""
    heads, rows = table
    write_atomically(path, (json.dumps({"heads": heads, "rows": rows}, indent=2) + "\n").encode())


def read_table(path: Path) -> Table:
    """Read a table that `write_table` stored."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return tuple(data["heads"]), [tuple(row) for row in data["rows"]]
