"""Write the report: one self-contained HTML page about a folder of runs."""

import json
from importlib import resources
from pathlib import Path
from typing import Any

from mrn.analysis.page_data import page_data
from mrn.analysis.run import NO_EPOCH, PRUNED
from mrn.analysis.runs import find_runs, warn_skipped
from mrn.analysis.summary import check_baseline
from mrn.utils.errors import UserError
from mrn.utils.extras import import_extra
from mrn.utils.files import make_writable_folder, read_limited, write_atomically


class NoRunsError(UserError):
    """No run has finished an epoch yet, but some may later."""


SCRIPTS = ("basics.js", "curves.js", "overview.js", "runs.js", "report.js")
"""Scripts of the page, in load order."""
MARK = b'<h1 id="title">mrn report</h1>'
"""What every report contains."""
MAX_PAGE_BYTES = 2**30
"""Size limit of a report, which contains videos."""


def write_report(
    root: Path,
    out: Path,
    refresh: int = 0,
    title: str = "",
    baseline: str = "",
    force: bool = False,
) -> tuple[Path, bool]:
    """Write OUT/index.html about all runs below a folder.

    Args:
        root: Folder of runs.
        out: Folder of the page; created if missing.
        refresh: Seconds after which an open page reloads; 0 for never.
        title: Title of the page; by default derived from the folder of runs.
        baseline: Method that all others are compared with; by default MRN's of the same settings.
        force: Overwrite an index.html that is not a report.

    Returns:
        The path of the page, and whether all runs are finished.

    Warns:
        UserWarning: A run is damaged, a folder was not searched, or a video cannot be read.

    Raises:
        NoRunsError: No run has finished an epoch yet.
        UserError: There are no runs, none that will have metrics or none of the baseline; or
            OUT/index.html is not a report and `force` is False.
    """
    _check_overwrite(out / "index.html", force)
    runs = find_runs(root)
    finished = all(run.is_final for run in runs)
    if all(run.problem for run in runs):
        kind = UserError if finished else NoRunsError
        raise kind(f"nothing to report in {root}: {runs[0].path}: {runs[0].problem}")
    check_baseline(runs, baseline)
    warn_skipped([run for run in runs if run.problem not in (NO_EPOCH, PRUNED)], "not shown")
    data = {
        "title": title or f"mrn report: {root.resolve().name}",
        "refresh": 0 if finished else refresh,
    }
    page = _render(data | page_data(runs, baseline))
    make_writable_folder(out)
    write_atomically(out / "index.html", page.encode(errors="backslashreplace"))
    return out / "index.html", finished


def _check_overwrite(page: Path, force: bool) -> None:
    """Raise if a page is not a report, which only `force` overwrites."""
    if page.is_file() and not force and MARK not in read_limited(page, MAX_PAGE_BYTES):
        raise UserError(f"{page} is not a report; use force to overwrite it")


def _render(data: dict[str, Any]) -> str:
    plotly = import_extra("plotly.offline", "report")
    folder = resources.files("mrn.analysis") / "page"
    page = (folder / "report.html").read_text(encoding="utf-8")
    text = json.dumps(data, allow_nan=False).replace("<", "\\u003c")  # cannot close the script tag
    parts = {
        "CSS": (folder / "report.css").read_text(encoding="utf-8"),
        "PLOTLY": plotly.get_plotlyjs(),
        "JS": "\n".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS),
        "DATA": text,
    }
    for name, part in parts.items():
        before, _, after = page.partition(f"/*{name}*/")
        page = before + part + after
    return page
