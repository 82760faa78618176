"""Ctrl-C, SIGTERM, and two processes on one folder."""

import os
import re
import signal
from pathlib import Path

import pytest

from tests.commands import MRN, Command, mrn, until
from tests.reliability.helpers import (
    children,
    on_a_terminal,
    same_run,
    start,
    tiny,
    wait_for,
)
from tests.training.helpers import tiny_run

LONG = "--cycles=12"
SLOW = "tests.envs.custom_envs:Slow-v0"
HANGS = "tests.envs.custom_envs:Hangs-v0"


def alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return status.exists() and not re.search(r"State:\s+Z", status.read_text())


def start_with_workers(folder: Path, task: str = SLOW) -> tuple[Command, list[int]]:
    """A run in its first cycles, and its worker processes."""
    process = start(folder, "--async-envs", "--num-envs=4", "--eval-episodes=0", LONG, task=task)
    until(lambda: "on cpu, replay" in process.shown()[0], process)  # it listens to signals now
    workers = children(process.pid)
    assert len(workers) == 5  # one of them for evaluations
    return process, workers


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    tiny_run(folder, cycles=12)
    return folder


def test_sigterm_saves_in_the_middle_of_an_epoch(whole, tmp_path):
    process = start(tmp_path / "run", LONG)
    wait_for(tmp_path / "run", process)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 143
    assert f"SIGTERM: saved; to go on: mrn resume {tmp_path / 'run'}" in errors
    assert "Traceback" not in errors
    names = sorted(path.name for path in (tmp_path / "run" / "checkpoints").glob("0*"))
    epoch, cycle = map(int, names[-1].split("-"))
    assert epoch == 2
    assert 0 < cycle < 12
    resumed = mrn("resume", tmp_path / "run")
    assert resumed.returncode == 0, resumed.stderr
    assert f"resumed at epoch 2, cycle {cycle}" in resumed.stdout
    assert same_run(whole, tmp_path / "run")


def test_ctrl_c_in_a_terminal(whole, tmp_path):
    process, terminal = on_a_terminal(MRN, *tiny(tmp_path / "run", LONG))
    wait_for(tmp_path / "run", process)
    terminal.press_ctrl_c()
    assert terminal.end(process) == 130
    shown = terminal.shown
    assert b"mrn resume" in shown
    notice = shown.find(b"saving after this cycle; once more to quit now")
    assert 0 <= notice < shown.find(b"mrn resume")
    assert b"Traceback" not in shown
    again = start(tmp_path / "run", LONG, "--resume")
    _, errors = again.communicate(timeout=120)
    assert again.returncode == 0, errors
    assert same_run(whole, tmp_path / "run")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_at_once_and_leaves_no_process(tmp_path, number):
    process, workers = start_with_workers(tmp_path / "run", HANGS)  # in a cycle without an end
    process.send_signal(number)
    until(lambda: "once more to quit now" in process.shown()[1], process)
    process.send_signal(number)
    assert process.wait(timeout=30) == -number  # and not when the workers are given up
    until(lambda: not any(map(alive, workers)), seconds=30)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_workers_end_with_an_interrupted_run(tmp_path, number):
    process, workers = start_with_workers(tmp_path / "run")
    # A terminal sends Ctrl-C to all of them, and who ends a job may send SIGTERM so.
    for pid in (process.pid, *workers):
        os.kill(pid, number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "mrn resume" in errors
    assert "Traceback" not in errors
    assert not [pid for pid in workers if alive(pid)]
    assert list((tmp_path / "run" / "checkpoints").glob("0*"))


def test_workers_that_are_all_killed_are_told_of(tmp_path):
    process, workers = start_with_workers(tmp_path / "run")
    for pid in workers:  # those of the evaluation, too, which nobody needs at the time
        os.kill(pid, signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 3
    assert re.search(r"error: a worker process of .*Slow-v0 died during a (step|reset)", errors)


def test_two_processes_on_one_folder(tmp_path):
    folder = tmp_path / "run"
    first = start(folder, LONG)
    wait_for(folder, first)
    first.send_signal(signal.SIGSTOP)  # so that it is not finished before the second looks
    second = start(folder, LONG, "--resume")
    _, errors = second.communicate(timeout=60)
    assert second.returncode == 2
    assert f"another process (number {first.pid}) is training in {folder}" in errors
    first.kill()  # a dead process keeps no lock
    first.communicate()
    assert (folder / ".lock").exists()
    third = start(folder, LONG, "--resume")
    _, errors = third.communicate(timeout=120)
    assert third.returncode == 0, errors
    assert not (folder / ".lock").exists()
