import errno
import fcntl
import os

import pytest

from mrn.runs.lock import RunLock, is_held
from mrn.utils.errors import UserError


@pytest.mark.parametrize("code", [errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS])
def test_storage_without_locks_is_not_another_process(tmp_path, monkeypatch, code):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(UserError, match="has no file locks") as caught:
        RunLock(tmp_path)
    assert "another process" not in str(caught.value)
    assert "--runs" in str(caught.value)
    assert not is_held(tmp_path)


def test_another_holder_is_named(tmp_path):
    lock = RunLock(tmp_path)
    with pytest.raises(UserError, match=rf"another process \(number {os.getpid()}\)"):
        RunLock(tmp_path)
    assert is_held(tmp_path)
    lock.close()
    assert not is_held(tmp_path)


def test_what_else_goes_wrong_is_not_blamed_on_a_lock(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(OSError, match="Input/output error"):
        RunLock(tmp_path)
