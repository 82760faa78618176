"""Runs with two ranks: kills, signals and invalid settings."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.commands import Command, mrn, until
from tests.ranks import start_ranks, wait_for_ranks
from tests.reliability.helpers import (
    children,
    same_run,
    start_in_terminal,
    tiny_arguments,
    wait_for,
)
from tests.reliability.kills import KILLED
from tests.training.helpers import metrics

LONG = "--cycles=16"
TORCHRUN = str(Path(sys.executable).with_name("torchrun"))


def start(folder: Path, *options: str, task: str = "FetchReach") -> list[Command]:
    return start_ranks(2, *tiny_arguments(folder, *options, task=task))


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory) -> Path:
    """An uninterrupted run of two ranks."""
    folder = tmp_path_factory.mktemp("uninterrupted") / "run"
    assert [code for code, *_ in wait_for_ranks(start(folder, LONG))] == [0, 0]
    return folder


def resume_and_compare(folder: Path, uninterrupted: Path) -> None:
    """Resume a run, and compare it with the uninterrupted one."""
    for code, _, errors in wait_for_ranks(start_ranks(2, "resume", folder)):
        assert code == 0, errors
    assert same_run(uninterrupted, folder)
    assert not list(folder.rglob("*.new"))


@pytest.mark.parametrize("victim", [0, 1])
def test_killed_rank_stops_the_other(victim, uninterrupted, tmp_path):
    folder = tmp_path / "run"
    ranks = start(folder, LONG)
    wait_for(folder, ranks[0])
    ranks[victim].kill()
    other = ranks[1 - victim]
    _, errors = other.communicate(timeout=30)
    assert ranks[victim].wait(5) == KILLED
    assert other.returncode == 3
    assert "one of the run's 2 processes exited, or timed out" in errors
    assert f": torchrun --nproc-per-node 2 -m mrn resume {folder}" in errors
    assert "Traceback" not in errors
    resume_and_compare(folder, uninterrupted)


@pytest.mark.parametrize("receivers", [[1], [0, 1]])
def test_signal_to_any_rank_saves_once_and_stops_all(receivers, uninterrupted, tmp_path):
    folder = tmp_path / "run"
    ranks = start(folder, LONG)
    wait_for(folder, ranks[0])
    for rank in receivers:
        ranks[rank].send_signal(signal.SIGINT)
    (code, _, errors), (other_code, _, other_errors) = wait_for_ranks(ranks, 30)
    assert code == other_code == 130
    resume = f"torchrun --nproc-per-node 2 -m mrn resume {folder}"
    assert len(re.findall(f"SIGINT: saved.*: {re.escape(resume)}", errors)) == 1
    assert other_errors == ""  # rank 0 reports for both
    names = sorted(path.name for path in (folder / "checkpoints").glob("0*"))
    assert len(names) == 2
    assert names[0] == "000002-000000"
    epoch, cycle = map(int, names[1].split("-"))
    assert (epoch, 0 < cycle < 16) == (2, True)
    resume_and_compare(folder, uninterrupted)


@pytest.mark.parametrize(
    ("size", "options", "message"),
    [
        (3, [], "equally; use num_envs 3 and batch_size 63, or another number"),
        (2, ["--batch-size=63"], "batch_size 63 equally; use batch_size 64"),
        (2, ["--buffer-size=60"], "at least 100 (2 episodes of 50 transitions stored at once)"),
        (2, ["--critic=unknown"], "unknown critic 'unknown'"),
    ],
)
def test_invalid_settings_are_reported_once(size, options, message, tmp_path):
    results = wait_for_ranks(start_ranks(size, *tiny_arguments(tmp_path / "run", *options)))
    assert sorted({code for code, *_ in results}) in ([2], [2, 3])
    printed = "".join(errors for *_, errors in results)
    assert printed.count("error: ") == 1
    assert message in printed
    assert not (tmp_path / "run" / "metrics.csv").exists()


def test_existing_run_is_not_overwritten(uninterrupted):
    before = {path: path.read_bytes() for path in uninterrupted.rglob("*") if path.is_file()}
    (code, _, errors), (_, _, others) = wait_for_ranks(start(uninterrupted, LONG))
    assert code == 2
    command = f"torchrun --nproc-per-node 2 -m mrn resume {uninterrupted}"
    assert f"already contains a run; resume it with: {command}" in errors
    assert others == ""
    assert {
        path: path.read_bytes() for path in uninterrupted.rglob("*") if path.is_file()
    } == before


def test_another_number_of_ranks_is_rejected_with_the_right_command(uninterrupted, tmp_path):
    alone = mrn("resume", uninterrupted, "--epochs=3")
    assert alone.returncode == 2
    expected = f"{uninterrupted} was trained by 2 processes, not 1; resume it with: "
    assert f"{expected}torchrun --nproc-per-node 2 -m mrn resume {uninterrupted}" in alone.stderr
    assert mrn(*tiny_arguments(tmp_path / "one", "--epochs=1")).returncode == 0
    # Three ranks could not divide the environments either, but that is not the cause.
    results = wait_for_ranks(start_ranks(3, "resume", tmp_path / "one", "--epochs=2"))
    assert [code for code, *_ in results] == [2, 2, 2]
    message = f"was trained by 1 process, not 3; resume it with: mrn resume {tmp_path / 'one'}"
    assert "".join(errors for *_, errors in results).count(message) == 1


def test_failing_environment_is_reported_by_its_rank(tmp_path):
    ranks = start(tmp_path / "run", task="tests.envs.custom_envs:RaisesInOne-v0")
    (code, _, errors), (other_code, _, other_errors) = wait_for_ranks(ranks, 60)
    assert code == other_code == 3
    assert errors == ""
    assert "RuntimeError: a fuse has blown" in other_errors


def test_torchrun_restarts_after_a_kill_and_stops_on_ctrl_c(uninterrupted, tmp_path):
    """End to end with torchrun, which restarts the ranks once."""
    folder = tmp_path / "run"
    options = ("--standalone", "--nproc-per-node", "2", "--max-restarts", "1", "-m", "mrn")
    process, terminal = start_in_terminal(
        TORCHRUN, *options, *tiny_arguments(folder, LONG, "--resume")
    )
    wait_for(folder, process)
    os.kill(children(process.pid)[1], signal.SIGKILL)
    until(lambda: b"resumed at epoch 2" in terminal.shown, process)
    terminal.press_ctrl_c()
    terminal.end(process)
    shown = terminal.shown
    saved = b"SIGINT: saved.*: torchrun --nproc-per-node 2 -m mrn resume"
    assert len(re.findall(saved, shown)) == 1
    assert len(metrics(folder)) == 1
    resume_and_compare(folder, uninterrupted)
