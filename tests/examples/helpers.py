"""Run the scripts of `examples/` and the code blocks of the documentation."""

import re
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from mrn import cli

ROOT = Path(__file__).parents[2]
DOCS, EXAMPLES = ROOT / "docs", ROOT / "examples"
SNIPPET = re.compile(r"^--8<--\n(?P<file>[^:\n]+)(?::(?P<section>[\w-]+))?\n--8<--$", re.M)
"""An include in block form. Ruff would format the one-line form as Python."""


def _isolate(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder, with its modules importable and a single thread.

    Other tests use the other cores.
    """
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.path", [str(folder), *sys.path])
    monkeypatch.setattr("mrn.training.setup.default_threads", lambda: 1)


def run_example(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a copy of an example as a script; return its global names."""
    script = shutil.copy(EXAMPLES / name, folder)
    _isolate(folder, monkeypatch)
    monkeypatch.delitem(sys.modules, Path(name).stem, raising=False)
    monkeypatch.setattr("sys.argv", [name])
    return runpy.run_path(str(script), run_name="__main__")


def run_blocks(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Execute all Python blocks of a page in order, except included files; return their names."""
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S)
    blocks = [block for block in blocks if not SNIPPET.search(block)]
    assert blocks
    _isolate(folder, monkeypatch)
    names: dict[str, Any] = {"__name__": "example"}
    for block in blocks:
        exec(block, names)
    return names


def run_command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr("sys.argv", ["mrn", *arguments])
    cli.main()
