"""Tests of atomic writes."""

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from mrn.utils import files
from mrn.utils.errors import RunError
from mrn.utils.files import write_atomically


def test_concurrent_writes_of_one_file_all_succeed(tmp_path):
    contents = [bytes([number]) * 10_000 for number in range(120)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: write_atomically(tmp_path / "file", content), contents))
    assert (tmp_path / "file").read_bytes() in contents
    assert os.listdir(tmp_path) == ["file"]


def test_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "usual").write_bytes(b"")
    write_atomically(tmp_path / "file", b"")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("usual", "file")]
    assert modes[0] == modes[1]


def test_long_file_name(tmp_path):
    write_atomically(tmp_path / ("ä" * 127), b"new")
    assert (tmp_path / ("ä" * 127)).read_bytes() == b"new"


@pytest.mark.parametrize(
    ("broken", "message", "content"),
    [
        ("replace", "the previous content is untouched", b"old"),
        ("sync_folder", "wrote .*a power failure may restore the previous content", b"new"),
    ],
)
def test_error_states_which_content_the_file_has(tmp_path, monkeypatch, broken, message, content):
    def fail(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    write_atomically(tmp_path / "file", b"old")
    monkeypatch.setattr(files if broken == "sync_folder" else files.os, broken, fail)
    with pytest.raises(RunError, match=message):
        write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == content
    assert os.listdir(tmp_path) == ["file"]


def test_interrupted_write_leaves_no_temporary_file(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "file", b"new")
    assert os.listdir(tmp_path) == []
