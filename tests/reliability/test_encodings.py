"""Commands in locales other than UTF-8, with paths and names that no encoding expects."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.helpers import run_command
from tests.commands import MRN, mrn
from tests.reliability.helpers import tiny_arguments
from tests.sweeps.helpers import write_run

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess:
    """Run a command in an ASCII locale."""
    words = [MRN, *map(str, arguments)]
    return subprocess.run(words, cwd=cwd, env=os.environ | ASCII, capture_output=True, timeout=120)


def test_report_and_figures_in_an_ascii_locale(tmp_path):
    write_run(tmp_path / "läufe", [0.5, 0.7], 1, task="Müll-v0")
    ended = run("report", "läufe", "-o", "Seite", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "M\\u00fcll-v0" in (tmp_path / "Seite" / "index.html").read_text(encoding="utf-8")
    ended = run("figures", "läufe", "-o", "Bilder", cwd=tmp_path)  # writes Müll-v0/...
    assert ended.returncode == 2
    assert b"error: the locale cannot encode the file name" in ended.stderr
    assert b"set PYTHONUTF8=1" in ended.stderr


def test_training_in_a_folder_whose_name_is_not_utf_8(tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/run-\xff"))
    ended = mrn(*tiny_arguments(folder))
    assert ended.returncode == 2
    assert "error: run_dir must be valid Unicode text, got " in ended.stderr
    assert "run-\\udcff" in ended.stderr
    assert not folder.exists()


@pytest.mark.parametrize("command", [("sweep", "quick"), ("tune", "FetchReach")], ids=str)
def test_sweep_in_a_folder_whose_name_is_not_utf_8(tmp_path, command):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/runs-\xff"))
    ended = mrn(*command, "--runs", folder)
    assert ended.returncode == 2
    assert "error: runs must be valid Unicode text, got " in ended.stderr
    assert not folder.exists()


@pytest.mark.parametrize("task", ["$\\frac{1}{$", "100$ and 200$-v0", "\x1b[31mred", "a\nb|c"])
def test_names_in_figures_and_tables(tmp_path, monkeypatch, task):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "runs", [0.5, 0.7], 1, task=task)
    write_run(tmp_path / "runs", [0.5, 0.7], 1, task="FetchPush")
    run_command(monkeypatch, "figures", "runs", "-o", "out")
    header, _, *rows = (tmp_path / "out" / "table.md").read_text(encoding="utf-8").splitlines()
    columns = header.count(" | ")
    assert [row.replace("\\|", "").count(" | ") for row in rows[:2]] == [columns] * 2
