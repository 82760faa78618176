"""A sweep that is killed leaves no process behind, at whatever moment its runs are."""

import time
from pathlib import Path

import pytest

from tests.commands import until
from tests.sweeps.helpers import start_sweep


def processes_of(folder: Path) -> list[int]:
    """Return the processes of runs in a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:  # it has ended
            continue
        if any(word.startswith(f"{folder}/runs/") for word in words):
            found.append(int(entry.name))
    return found


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.2])
def test_killed_sweep_leaves_no_run_that_is_still_starting(tmp_path, delay):
    sweep = start_sweep(tmp_path, count=1, epochs=1000)
    until(lambda: processes_of(tmp_path), sweep)
    time.sleep(delay)
    sweep.kill()
    until(lambda: not processes_of(tmp_path), seconds=10)
    assert not list(tmp_path.rglob("metrics.csv"))
