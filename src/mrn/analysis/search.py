"""Search a folder for runs."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from mrn.runs.layout import CONFIG, METRICS
from mrn.utils.files import is_inside


@dataclass
class Found:
    """Result of a search."""

    folders: list[Path] = field(default_factory=list)
    """Run folders, some of which may be damaged: they have settings or metrics."""
    csvs: list[Path] = field(default_factory=list)
    """CSVs named seed-SEED.csv, without those next to the folder of their own run."""
    skipped: dict[Path, str] = field(default_factory=dict)
    """Folders that were not searched, and why."""


def search(root: Path) -> Found:
    """Search a folder for run folders and CSVs.

    Links to run folders are followed. Links to other folders are not, because they may lead to
    large parts of the disk. A run with several paths is found once.
    """
    found, links = Found(), []

    def skip(error: OSError) -> None:
        found.skipped[Path(error.filename)] = f"cannot read the folder: {error.strerror}"

    for folder, below, files in os.walk(root, onerror=skip):
        path = Path(folder)
        below.sort()
        if METRICS in files or CONFIG in (*files, *below):
            below.clear()
            found.folders.append(path)
        links += [path / name for name in below if (path / name).is_symlink()]
        found.csvs += [
            path / name
            for name in sorted(files)
            if name.startswith("seed-") and name.endswith(".csv")
            if not os.path.exists(path / name.removesuffix(".csv") / CONFIG)
        ]
    targets = set()
    for link in sorted(links, key=lambda path: -len(path.parts)):  # TASK/ALGO-CRITIC/SEED first
        target = os.path.realpath(link)
        if target in targets or is_inside(link, root):  # found without the link
            continue
        if os.path.lexists(link / CONFIG):
            found.folders.append(link)
            targets.add(target)
        else:
            found.skipped[link] = f"it is a link to {target}, which is not searched for runs"
    return found
