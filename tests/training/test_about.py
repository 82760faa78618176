"""What a run says of the code that trained it."""

import json
import subprocess

from mrn.training.about import commit
from tests.training.helpers import tiny_run


def git(folder, *arguments: str) -> str:
    identity = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def test_the_commit_is_that_of_the_repository_that_has_the_code(tmp_path):
    code = tmp_path / "src" / "code"
    installed = tmp_path / ".venv" / "code"
    for folder in (code, installed):
        folder.mkdir(parents=True)
        (folder / "a.py").write_text("1")
    assert commit(code) == {}
    git(tmp_path, "init")
    assert commit(code) == {}  # not committed, nor tracked
    git(tmp_path, "add", "src")
    git(tmp_path, "commit", "-m", "first")
    head = git(tmp_path, "rev-parse", "HEAD").strip()
    (tmp_path / "notes").write_text("not code")
    assert commit(code) == {"commit": head}
    assert commit(installed) == {}
    (code / "a.py").write_text("2")
    assert commit(code) == {"commit": f"{head}, edited"}


def test_without_git_no_commit_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit() == {}


def test_a_run_names_the_commit(tmp_path, monkeypatch):
    monkeypatch.setattr("mrn.training.about.commit", lambda: {"commit": "abc, edited"})
    tiny_run(tmp_path / "run", epochs=1)
    about = json.loads((tmp_path / "run" / "config.json").read_text())
    assert about["versions"]["commit"] == "abc, edited"
