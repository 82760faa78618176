"""Tests of the error messages and exit codes of `report_errors`."""

import errno
import re

import pytest

from mrn.utils.errors import report_errors


def test_os_error_without_a_file_name_shows_the_source_line(capsys):
    with pytest.raises(SystemExit) as end, report_errors():
        raise OSError(errno.EBADF, "Bad file descriptor")
    assert end.value.code == 1  # not a user error
    assert re.fullmatch(
        rf"error: OSError: .*Bad file descriptor \({re.escape(__file__)}, line \d+\)\n",
        capsys.readouterr().err,
    )


def test_broken_pipe_other_than_stdout_is_raised(tmp_path, monkeypatch):
    """Only a closed stdout ends a command silently; see tests/cli/test_main.py."""
    with open(tmp_path / "out", "w", encoding="utf-8") as out:
        monkeypatch.setattr("sys.stdout", out)
        with pytest.raises(BrokenPipeError), report_errors():
            raise BrokenPipeError
