"""A run's own process in a sweep."""

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import os, sys
from pathlib import Path
from mrn.experiments.child import give_way_as_asked
os.nice(int(sys.argv[1]))
give_way_as_asked(*map(Path, sys.argv[2:]))
"""


def given_way(niceness: int, *session: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", CODE, str(niceness), *map(str, session)],
        check=True,
        start_new_session=True,
    )


@pytest.mark.parametrize(("niceness", "written"), [(7, "7"), (0, "/autogroup-3 nice 0")])
def test_the_session_of_a_run_is_as_nice_as_its_sweep(tmp_path, niceness, written):
    session = tmp_path / "autogroup"
    session.write_text("/autogroup-3 nice 0")
    given_way(niceness, session)
    assert session.read_text() == written


def test_a_system_without_such_sessions_needs_nothing(tmp_path):
    given_way(7, tmp_path / "autogroup")
    assert not (tmp_path / "autogroup").exists()
    given_way(7, tmp_path)  # nor is one that cannot be written an error
