"""Signals that stop a run, and two processes in one run folder."""

import os
import re
import signal
from pathlib import Path

import pytest

from tests.commands import MRN, Command, mrn, until
from tests.reliability.helpers import (
    children,
    same_run,
    start,
    start_in_terminal,
    tiny_arguments,
    wait_for,
)
from tests.training.helpers import tiny_run

LONG = "--cycles=12"
SLOW = "tests.envs.custom_envs:Slow-v0"
HANGS = "tests.envs.custom_envs:Hangs-v0"


def alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return status.exists() and not re.search(r"State:\s+Z", status.read_text(encoding="utf-8"))


def start_with_workers(folder: Path, task: str = SLOW) -> tuple[Command, list[int]]:
    """Start a run with worker processes; return both."""
    process = start(folder, "--async-envs", "--num-envs=4", "--eval-episodes=0", LONG, task=task)
    until(
        lambda: "on cpu, replay" in process.shown()[0], process
    )  # the signal handler is installed
    workers = children(process.pid)
    assert len(workers) == 5  # one of them for evaluation
    return process, workers


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory) -> Path:
    """An uninterrupted run."""
    folder = tmp_path_factory.mktemp("uninterrupted") / "run"
    tiny_run(folder, cycles=12)
    return folder


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signal_saves_in_the_middle_of_an_epoch(uninterrupted, tmp_path, number):
    process = start(tmp_path / "run", LONG)
    wait_for(tmp_path / "run", process)
    process.send_signal(number)
    if number != signal.SIGTERM:
        process.send_signal(number)  # a shell and the kernel may both send it
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    resume = f"mrn resume {tmp_path / 'run'}"
    assert re.search(f"{number.name}: saved.*: {re.escape(resume)}", errors)
    assert "Traceback" not in errors
    names = sorted(path.name for path in (tmp_path / "run" / "checkpoints").glob("0*"))
    epoch, cycle = map(int, names[-1].split("-"))
    assert epoch == 2
    assert 0 < cycle < 12
    resumed = mrn("resume", tmp_path / "run")
    assert resumed.returncode == 0, resumed.stderr
    assert f"resumed at epoch 2, cycle {cycle}" in resumed.stdout
    assert same_run(uninterrupted, tmp_path / "run")


def test_ctrl_c_in_a_terminal_saves(uninterrupted, tmp_path):
    process, terminal = start_in_terminal(MRN, *tiny_arguments(tmp_path / "run", LONG))
    wait_for(tmp_path / "run", process)
    terminal.press_ctrl_c()
    assert terminal.end(process) == 130
    shown = terminal.shown
    assert b"mrn resume" in shown
    notice = shown.find(b"saving after this cycle; ")
    assert 0 <= notice < shown.find(b"mrn resume")
    assert b"Traceback" not in shown
    again = start(tmp_path / "run", LONG, "--resume")
    _, errors = again.communicate(timeout=120)
    assert again.returncode == 0, errors
    assert same_run(uninterrupted, tmp_path / "run")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_second_signal_quits_immediately_and_leaves_no_process(tmp_path, number):
    process, workers = start_with_workers(tmp_path / "run", HANGS)  # in a cycle that never ends
    process.send_signal(number)
    until(lambda: "saving after this cycle; " in process.shown()[1], process)
    process.send_signal(number)
    assert process.wait(timeout=30) == -number  # without waiting for the workers
    until(lambda: not any(map(alive, workers)), seconds=30)


def test_closed_terminal_saves(uninterrupted, tmp_path):
    process, terminal = start_in_terminal(MRN, *tiny_arguments(tmp_path / "run", LONG))
    wait_for(tmp_path / "run", process)
    terminal.hang_up()
    assert process.wait(timeout=60) == 129
    names = sorted(path.name for path in (tmp_path / "run" / "checkpoints").glob("0*"))
    assert not names[-1].endswith("-000000")  # in the middle of an epoch
    resumed = mrn("resume", tmp_path / "run")
    assert resumed.returncode == 0, resumed.stderr
    assert same_run(uninterrupted, tmp_path / "run")


def ignore_sighup() -> None:
    """Do what `nohup` does."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def test_nohup_keeps_a_run_alive(uninterrupted, tmp_path):
    process = Command(*tiny_arguments(tmp_path / "run", LONG), prepare=ignore_sighup)
    wait_for(tmp_path / "run", process)
    process.send_signal(signal.SIGHUP)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert same_run(uninterrupted, tmp_path / "run")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_workers_exit_with_an_interrupted_run(tmp_path, number):
    process, workers = start_with_workers(tmp_path / "run")
    # A terminal sends Ctrl-C to all processes, and a job scheduler may do so with SIGTERM.
    for pid in (process.pid, *workers):
        os.kill(pid, number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "mrn resume" in errors
    assert "Traceback" not in errors
    assert not [pid for pid in workers if alive(pid)]
    assert list((tmp_path / "run" / "checkpoints").glob("0*"))


def test_killed_workers_are_reported(tmp_path):
    process, workers = start_with_workers(tmp_path / "run")
    for pid in workers:  # including the idle one for evaluation
        os.kill(pid, signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 3
    assert re.search(r"error: a worker process of .*Slow-v0 died during a (step|reset)", errors)


def test_second_process_in_a_run_folder_is_rejected(tmp_path):
    folder = tmp_path / "run"
    first = start(folder, LONG)
    wait_for(folder, first)
    first.send_signal(signal.SIGSTOP)  # so that it does not finish before the second starts
    second = start(folder, LONG, "--resume")
    _, errors = second.communicate(timeout=60)
    assert second.returncode == 2
    assert f"another process (PID {first.pid}) is training in {folder}" in errors
    first.kill()  # the lock of a dead process is released
    first.communicate()
    assert (folder / ".lock").exists()
    third = start(folder, LONG, "--resume")
    _, errors = third.communicate(timeout=120)
    assert third.returncode == 0, errors
    assert not (folder / ".lock").exists()
