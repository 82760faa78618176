"""Tests of the process pool of the toy example: shutdown and progress messages."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from mrn.studies.toy.pool import run_all
from mrn.utils.errors import RunError
from tests.commands import until
from tests.reliability.test_signals import alive, children

COMMAND = "import mrn.cli; mrn.cli.main()"


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# Importing takes about 3 seconds: the first case interrupts it, the second one the training.
@pytest.mark.parametrize("cpu_time", [0.5, 4.0])
def test_ctrl_c_stops_all_processes(tmp_path, cpu_time):
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "toy", "-o", str(tmp_path / "toy")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell starts background jobs with SIGINT ignored, and these tests may be one.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    try:
        until(lambda: any(cpu_seconds(pid) > cpu_time for pid in children(process.pid)), process)
        workers = children(process.pid)
        assert len(workers) >= 2  # at least one worker and the resource tracker
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        # This takes a second or two, mostly to unload torch; the study takes minutes.
        out, errors = process.communicate(timeout=30)
        until(lambda: not any(alive(pid) for pid in workers), seconds=10)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert out == ""
    lines = errors.splitlines()
    assert lines[-1].startswith("SIGINT: the study was not finished")
    assert all(line.startswith("trained ") for line in lines[:-1])


def test_each_task_is_logged_and_results_keep_their_order(capsys):
    work = {f"root of {n}": partial(pow, n, 0.5) for n in (4.0, 9.0, 16.0)}
    assert list(run_all(work, 2).items()) == [
        ("root of 4.0", 2.0), ("root of 9.0", 3.0), ("root of 16.0", 4.0),
    ]  # fmt: skip
    lines = capsys.readouterr().err.splitlines()
    assert sorted(line.split(" (")[0] for line in lines) == sorted(f"trained {n}" for n in work)
    assert lines[-1].endswith("(3/3)")


def test_killed_process_and_exceptions_are_raised():
    with pytest.raises(RunError, match="a process of the study was killed"):
        run_all({"dies": partial(os._exit, 9)}, 1)
    with pytest.raises(ValueError, match="could not convert"):
        run_all({"fails": partial(float, "x"), "waits": partial(time.sleep, 600)}, 2)
