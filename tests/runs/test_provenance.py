"""What a run says of the code that trained it."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from mrn.runs.provenance import commit
from tests.training.helpers import tiny_run


def git(folder: Path, *arguments: str) -> str:
    """Git without the settings of whoever runs the tests."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    clean |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-c", "user.name=me", "-c", "user.email=me@example.org", *arguments]
    return subprocess.check_output(command, cwd=folder, env=clean, text=True).strip()


@pytest.fixture
def code(tmp_path):
    """A folder of code that is committed."""
    folder = tmp_path / "src" / "code"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text("1")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "src")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    return folder


def test_the_commit_is_the_last_one_of_the_code(code, tmp_path):
    first = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "notes").write_text("not code")
    assert commit(code) == {"commit": first}
    git(tmp_path, "add", "notes")
    git(tmp_path, "commit", "--quiet", "-m", "notes")
    assert commit(code) == {"commit": first}
    (code / "a.py").write_text("2")
    assert commit(code) == {"commit": f"{first}, edited"}
    git(tmp_path, "commit", "--quiet", "-a", "-m", "second")
    assert commit(code) == {"commit": git(tmp_path, "rev-parse", "HEAD")}


def test_a_repository_that_does_not_track_the_code_is_not_named(code, tmp_path, monkeypatch):
    installed = tmp_path / ".venv" / "code"
    installed.mkdir(parents=True)
    (installed / "a.py").write_text("1")
    assert commit(installed) == {}
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    elsewhere.mkdir()
    assert commit(elsewhere) == {}
    before = commit(code)
    other = elsewhere / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    git(other, "commit", "--quiet", "--allow-empty", "-m", "another")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert commit(code) == before
    assert commit(installed) == {}


def test_git_is_asked_without_writing(code, tmp_path):
    index = tmp_path / ".git" / "index"
    (code / "a.py").touch()  # which git status would note in the index
    before = index.stat()
    commit(code)
    after = index.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_where_git_cannot_tell_edits_that_is_said(code, tmp_path, monkeypatch):
    real = subprocess.check_output(["which", "git"], text=True).strip()
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\n[ "$2" = status ] && exit 128\nexec {real} "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    assert commit(code)["commit"].endswith(", perhaps edited")


def test_without_git_no_commit_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit() == {}


def test_a_run_names_the_commit(tmp_path, monkeypatch):
    monkeypatch.setattr("mrn.runs.provenance.commit", lambda: {"commit": "abc, edited"})
    tiny_run(tmp_path / "run", epochs=1)
    about = json.loads((tmp_path / "run" / "config.json").read_text())
    assert about["versions"]["commit"] == "abc, edited"
