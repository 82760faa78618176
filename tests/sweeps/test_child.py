"""Niceness of the process of a run."""

import os
from pathlib import Path

import pytest

from mrn.sweeps import child
from mrn.sweeps.child import apply_niceness


@pytest.fixture
def autogroup(tmp_path):
    file = tmp_path / "autogroup"
    file.write_text("/autogroup-3 nice 0")
    return file


@pytest.mark.parametrize(("niceness", "written"), [(7, "7"), (0, "/autogroup-3 nice 0")])
def test_session_gets_the_niceness_of_the_sweep(autogroup, monkeypatch, niceness, written):
    monkeypatch.setattr(os, "getpriority", lambda *_: niceness)
    apply_niceness(autogroup)
    assert autogroup.read_text() == written


def test_blocked_write_is_retried(autogroup, monkeypatch):
    write, answers = Path.write_text, iter([BlockingIOError, BlockingIOError, None])

    def write_text(path, text, encoding):
        if answer := next(answers):
            raise answer
        return write(path, text, encoding)

    monkeypatch.setattr(os, "getpriority", lambda *_: 7)
    monkeypatch.setattr(child.time, "sleep", lambda _: None)
    monkeypatch.setattr(Path, "write_text", write_text)
    apply_niceness(autogroup)
    assert autogroup.read_text() == "7"
    assert next(answers, "exhausted") == "exhausted"


def test_missing_autogroup_is_ignored(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getpriority", lambda *_: 7)
    apply_niceness(tmp_path / "autogroup")
    assert not (tmp_path / "autogroup").exists()
    apply_niceness(tmp_path)  # exists, but is not writable
