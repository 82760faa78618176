"""Provenance: commit, versions and machine of a run."""

import json
import os
import subprocess
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from mrn.envs import engines
from mrn.runs.provenance import commit, read_config, read_run_info
from tests.training.helpers import tiny_run


def git(folder: Path, *arguments: str) -> str:
    """Run git without the user's configuration."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    clean |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-c", "user.name=me", "-c", "user.email=me@example.org", *arguments]
    return subprocess.check_output(command, cwd=folder, env=clean, text=True).strip()


@pytest.fixture
def code(tmp_path):
    """Folder of committed code."""
    folder = tmp_path / "src" / "code"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text("1")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "src")
    git(tmp_path, "commit", "--quiet", "-m", "first")
    return folder


def test_commit_is_the_last_one_that_changed_the_code(code, tmp_path):
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


def test_repository_that_does_not_track_the_code_is_ignored(code, tmp_path, monkeypatch):
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


def test_git_does_not_write_to_the_repository(code, tmp_path):
    index = tmp_path / ".git" / "index"
    (code / "a.py").touch()  # git status would refresh the index
    before = index.stat()
    commit(code)
    after = index.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_unknown_edits_are_marked(code, tmp_path, monkeypatch):
    real = subprocess.check_output(["which", "git"], text=True).strip()
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\n[ "$2" = status ] && exit 128\nexec {real} "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    assert commit(code)["commit"].endswith(", perhaps edited")


def test_no_commit_without_git(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit() == {}


def test_run_records_the_commit(tmp_path, monkeypatch):
    monkeypatch.setattr("mrn.runs.provenance.commit", lambda: {"commit": "abc, edited"})
    tiny_run(tmp_path / "run", epochs=1)
    about = json.loads((tmp_path / "run" / "config.json").read_text())
    assert about["versions"]["commit"] == "abc, edited"


def test_changed_versions_warn_and_are_recorded(tmp_path):
    tiny_run(tmp_path / "run", epochs=1)
    file = tmp_path / "run" / "config.json"
    about = json.loads(file.read_text())
    now = about["versions"]
    before = now | {"torch": "1.0", "commit": "abc"}
    about["versions"] = before
    about["machine"]["cpu"] = "Abacus"
    file.write_text(json.dumps(about))
    message = "setup: torch was 1.0, now .*; commit was abc, now .*; cpu was Abacus, now"
    with pytest.warns(UserWarning, match=message):
        tiny_run(tmp_path / "run", resume=True)
    read = read_run_info(tmp_path / "run")
    assert read.versions == now
    place = {"cpu": "Abacus", "engine": "envpool", "threads": "1", "device": "cpu"}
    place |= {"precision": "float32"}
    assert read.earlier_versions == [before | place]
    assert int(read.machine["cores"]) >= 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny_run(tmp_path / "run", epochs=3, resume=True)
    assert read_run_info(tmp_path / "run").earlier_versions == read.earlier_versions


def test_resumed_run_keeps_its_number_of_threads(tmp_path, monkeypatch):
    """A run started on two cores keeps two threads on four: more would change rounding."""
    monkeypatch.setattr("mrn.utils.device._cores", lambda: 2)
    used = []

    @contextmanager
    def spy(count):
        used.append(count)
        yield

    monkeypatch.setattr("mrn.training.setup.torch_threads", spy)
    tiny_run(tmp_path, epochs=1, threads=None)
    monkeypatch.setattr("mrn.utils.device._cores", lambda: 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny_run(tmp_path, epochs=2, threads=None, resume=True)
    with pytest.warns(UserWarning, match="threads was 2, now 3"):  # explicit
        tiny_run(tmp_path, epochs=3, threads=3, resume=True)
    tiny_run(tmp_path, epochs=4, threads=None, resume=True)
    assert [count for count in used if count != 1] == [2, 2, 3, 3]
    assert read_config(tmp_path).threads is None  # the setting itself stays open for other machines
    assert read_run_info(tmp_path).machine["threads"] == "3"


def test_resumed_run_keeps_its_engine(tmp_path, monkeypatch):
    """A run started without EnvPool stays on Gymnasium after EnvPool is installed."""
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "envpool", None)
        engines._warn_without_envpool.cache_clear()
        with pytest.warns(UserWarning, match="EnvPool is not installed: tasks run") as caught:
            tiny_run(tmp_path, epochs=1)
    assert len(caught) == 1
    assert read_run_info(tmp_path).machine["engine"] == "gymnasium"
    assert read_config(tmp_path).engine == "auto"
    tiny_run(tmp_path, epochs=2, resume=True)
    assert read_run_info(tmp_path).machine["engine"] == "gymnasium"
    file = tmp_path / "config.json"
    file.write_text(file.read_text().replace('"engine": "gymnasium"', '"engine": "envpool"'))
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.warns(UserWarning, match="engine was envpool, now gymnasium"):
        tiny_run(tmp_path, epochs=3, resume=True)


def test_resumed_run_keeps_its_type_of_device(tmp_path, monkeypatch):
    tiny_run(tmp_path, epochs=1)
    given = []
    monkeypatch.setattr(
        "mrn.training.setup.find_device", lambda name: given.append(name) or torch.device("cpu")
    )
    tiny_run(tmp_path, epochs=2, resume=True)
    file = tmp_path / "config.json"
    # Until version 0.2, `auto` was a GPU if there was one.
    on_gpu = file.read_text().replace('"device": "cpu"', '"device": "cuda"')
    for epochs, gpus in ((3, []), (4, ["0"])):
        file.write_text(on_gpu)
        monkeypatch.setattr("mrn.runs.provenance.visible_gpus", lambda gpus=gpus: gpus)
        with pytest.warns(UserWarning, match="device was cuda, now cpu"):
            tiny_run(tmp_path, epochs=epochs, resume=True)
    assert given == ["auto", "auto", "cuda"]
