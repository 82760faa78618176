"""Helpers for tests of the command line."""

import pytest

from mrn import cli


def run_command(monkeypatch, *arguments: str) -> None:
    """Run an `mrn` command in this process."""
    monkeypatch.setattr("sys.argv", ["mrn", *arguments])
    cli.main()


def exit_code(monkeypatch, *arguments: str) -> int:
    """Run an `mrn` command that exits early, and return its exit code."""
    with pytest.raises(SystemExit) as end:
        run_command(monkeypatch, *arguments)
    return end.value.code
