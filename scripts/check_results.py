"""Check that published results match their runs: `make check-results`.

Recomputes every table, loads every suite and settings file, and compares all generated sections of
the pages. Prints one line per problem and exits with status 1 if there is any.
"""

import json
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from mrn.analysis.run import Run
from mrn.analysis.runs import find_runs, group
from mrn.analysis.summary import Summary
from mrn.analysis.tables import as_csv, markdown
from mrn.config import Config
from mrn.runs.provenance import read_run_info_file
from mrn.utils.errors import UserError
from mrn.utils.renames import upgrade_config
from scripts.draw_results import run_digests
from scripts.pages import outdated_pages
from scripts.studies import (
    DIGESTS,
    ROOT,
    find_studies,
    find_suites,
    planned_runs,
    run_place,
    summarize_study,
)

FIGURES = ("curves", "aggregate", "ablation")
INDEX_LINES = 80
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
INDEX_ROW = re.compile(r"^\| (?P<task>[^|]+) \| [^|]+ \| (?P<seeds>\d+) \|.*\]\((?P<study>[\w-]+)/")


def check_suites(results: Path) -> Iterator[str]:
    """Check that suites load and write into their study's folder."""
    for study in find_studies(results):
        suites = find_suites(study)
        if not suites:
            yield f"{study.name}: no suite file"
        for name, suite in suites.items():
            if Path(suite.folder).parts[0] != study.name:
                yield f"{study.name}/{name}: folder must start with {study.name}/"


def check_runs(results: Path) -> Iterator[str]:
    """Check that every run is complete, readable and part of a suite of its study."""
    for study in find_studies(results):
        planned = planned_runs(study)
        for run in find_runs(study):
            place = run_place(run, results)
            if run.problem:
                yield f"{place}: {run.problem}"
            elif place not in planned:
                yield f"{place}: no suite of {study.name} has this run"
            else:
                yield from (f"{place}: {text}" for text in _deviations(run, planned[place]))
    for file in sorted(results.rglob("seed-*.json")):
        try:
            yield from _check_settings(file, file.relative_to(results).as_posix())
        except UserError as error:
            yield str(error)


def _check_settings(file: Path, place: str) -> Iterator[str]:
    if not file.with_suffix(".csv").exists():
        yield f"{place}: no metrics next to it"
    read_run_info_file(file)
    config = json.loads(file.read_text(encoding="utf-8"))["config"]
    if upgrade_config(config) != config:
        yield f"{place}: settings have old names"


def _deviations(run: Run, planned: Config) -> Iterator[str]:
    if run.epochs != planned.epochs and not run.stopped:
        yield f"{run.epochs} epochs, the suite has {planned.epochs}"
    if run.config is not None:
        for part in ("schedule", "algo_config", "replay"):
            if getattr(run.config, part) != getattr(planned, part):
                yield f"{part} differs from the suite"


def check_tables(results: Path) -> Iterator[str]:
    """Check tables, and that figures were drawn from the runs next to them."""
    digests = json.loads((results / DIGESTS).read_text(encoding="utf-8"))
    current = run_digests(results)
    for study in find_studies(results):
        for name, summary in summarize_study(study).items():
            folder = study / name
            place = folder.relative_to(results).as_posix()
            for file, text in (("table.md", markdown(summary)), ("table.csv", as_csv(summary))):
                path = folder / file
                if not path.exists() or path.read_text(encoding="utf-8") != text:
                    yield f"{place}/{file} does not match its runs: run `make results`"
            if digests.get(place) != current[place]:
                yield f"{place}: figures were drawn from other runs: run `make results`"
            yield from _check_figures(folder, place, summary)


def _check_figures(folder: Path, place: str, summary: Summary) -> Iterator[str]:
    present = {path.stem for path in folder.glob("*.png") if path.stem in FIGURES}
    expected = {"curves"} | ({"aggregate"} if len(summary.tasks) > 1 else set())
    if present - {"ablation"} != expected:
        yield f"{place}: figures are {sorted(present)}, expected {sorted(expected)}"


def check_pages(root: Path) -> Iterator[str]:
    """Check generated sections, links of the results' pages, and the index."""
    try:
        for page in outdated_pages(root):
            yield f"{page.relative_to(root)}: a table is outdated: run `make pages`"
    except UserError as error:
        yield str(error)
    results = root / "results"
    index = results / "README.md"
    for page in (index, *(study / "README.md" for study in find_studies(results))):
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            if "://" not in link and not (page.parent / link).exists():
                yield f"{page.relative_to(root)}: broken link {link}"
    lines = index.read_text(encoding="utf-8").splitlines()
    if len(lines) > INDEX_LINES:
        yield f"results/README.md has {len(lines)} lines, at most {INDEX_LINES} are allowed"
    yield from _check_index(results, lines)


def _check_index(results: Path, lines: list[str]) -> Iterator[str]:
    """Check that the index lists every study and states the number of seeds."""
    rows = [match for line in lines if (match := INDEX_ROW.match(line))]
    for study in find_studies(results):
        own = [row for row in rows if row["study"] == study.name]
        if not own:
            yield f"results/README.md: no row for {study.name}"
        for row in own:
            task, seeds = row["task"].strip(), int(row["seeds"])
            counts = _seed_counts(study, task)
            if seeds not in counts:
                yield f"results/README.md: {task} of {study.name} has {counts} seeds, not {seeds}"


def _seed_counts(study: Path, task: str) -> list[int]:
    methods = [
        runs
        for tasks in group(find_runs(study)).values()
        for name, by_method in tasks.items()
        if name.rpartition(":")[2] == task
        for runs in by_method.values()
    ]
    return sorted({len(runs) for runs in methods})


def find_problems(root: Path) -> list[str]:
    """Return all problems, one line each."""
    results = root / "results"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checks = (check_suites(results), check_runs(results), check_tables(results))
        return [problem for check in (*checks, check_pages(root)) for problem in check]


def main(root: Path = ROOT) -> None:
    """Print all problems; exit with status 1 if there are any."""
    try:
        problems = find_problems(root)
    except UserError as error:
        problems = [str(error)]
    for problem in problems:
        print(problem)
    if problems:
        sys.exit(1)
    print("results match their runs")


if __name__ == "__main__":
    main()
