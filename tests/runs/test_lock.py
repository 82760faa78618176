"""Lock on a run folder."""

import errno
import fcntl
import os
import time

import pytest

from mrn.runs.lock import RunLock, is_held
from mrn.utils.errors import UserError


@pytest.mark.parametrize("code", [errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS])
def test_storage_without_locks_has_its_own_message(tmp_path, monkeypatch, code):
    def fail_to_lock(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", fail_to_lock)
    with pytest.raises(UserError, match="does not support file locks") as caught:
        RunLock(tmp_path)
    assert "another process" not in str(caught.value)
    assert "on another disk" in str(caught.value)
    assert not is_held(tmp_path)


def test_error_names_the_process_that_holds_the_lock(tmp_path):
    lock = RunLock(tmp_path)
    with pytest.raises(UserError, match=rf"another process \(PID {os.getpid()}\)"):
        RunLock(tmp_path)
    assert is_held(tmp_path)
    lock.close()
    assert not is_held(tmp_path)


def test_lock_released_during_the_wait_is_acquired(tmp_path, monkeypatch):
    """The holder removes its file, so a waiting process must open the new one."""
    holder, sleep = RunLock(tmp_path), time.sleep

    def release(seconds):
        holder.close()
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", release)
    lock = RunLock(tmp_path)
    assert is_held(tmp_path)
    lock.close()


def test_lock_released_between_opening_and_locking_is_acquired(tmp_path, monkeypatch):
    holder, flock = RunLock(tmp_path), fcntl.flock

    def release_first(*arguments):
        monkeypatch.setattr(fcntl, "flock", flock)
        holder.close()
        return flock(*arguments)

    monkeypatch.setattr(fcntl, "flock", release_first)
    lock = RunLock(tmp_path)
    with pytest.raises(UserError, match="another process"):
        RunLock(tmp_path)
    lock.close()


def test_other_errors_are_not_attributed_to_a_lock(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(OSError, match="Input/output error"):
        RunLock(tmp_path)
