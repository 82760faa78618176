"""A run's own process in a sweep, and how it gives way."""

import os
from pathlib import Path

import pytest

from mrn.sweeps import child
from mrn.sweeps.child import apply_niceness


@pytest.fixture
def session(tmp_path):
    file = tmp_path / "autogroup"
    file.write_text("/autogroup-3 nice 0")
    return file


@pytest.mark.parametrize(("niceness", "written"), [(7, "7"), (0, "/autogroup-3 nice 0")])
def test_the_session_of_a_run_is_as_nice_as_its_sweep(session, monkeypatch, niceness, written):
    monkeypatch.setattr(os, "getpriority", lambda *_: niceness)
    apply_niceness(session)
    assert session.read_text() == written


def test_one_that_is_told_to_wait_asks_again(session, monkeypatch):
    write, answers = Path.write_text, iter([BlockingIOError, BlockingIOError, None])

    def write_text(path, text):
        if answer := next(answers):
            raise answer
        return write(path, text)

    monkeypatch.setattr(os, "getpriority", lambda *_: 7)
    monkeypatch.setattr(child.time, "sleep", lambda _: None)
    monkeypatch.setattr(Path, "write_text", write_text)
    apply_niceness(session)
    assert session.read_text() == "7"
    assert next(answers, "none left") == "none left"


def test_where_it_cannot_be_said_a_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getpriority", lambda *_: 7)
    apply_niceness(tmp_path / "autogroup")
    assert not (tmp_path / "autogroup").exists()
    apply_niceness(tmp_path)  # is there, and cannot be written
