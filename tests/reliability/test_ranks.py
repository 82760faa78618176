"""Runs of two processes that are killed, interrupted, or asked for what they cannot do."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.commands import Command, mrn, until
from tests.ranks import finish, start_team
from tests.reliability.helpers import (
    KILLED,
    children,
    on_a_terminal,
    same_run,
    tiny,
    wait_for,
)
from tests.training.helpers import metrics

LONG = "--cycles=16"
TORCHRUN = str(Path(sys.executable).with_name("torchrun"))


def start(folder: Path, *options: str, task: str = "FetchReach") -> list[Command]:
    return start_team(2, *tiny(folder, *options, task=task))


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The run of two processes that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert [code for code, *_ in finish(start(folder, LONG))] == [0, 0]
    return folder


def go_on(folder: Path, whole: Path) -> None:
    """Resume, and end as the run that nothing interrupted."""
    for code, _, errors in finish(start_team(2, "resume", folder)):
        assert code == 0, errors
    assert same_run(whole, folder)
    assert not list(folder.rglob("*.new"))


@pytest.mark.parametrize("victim", [0, 1])
def test_one_killed_process_ends_the_other(victim, whole, tmp_path):
    folder = tmp_path / "run"
    ranks = start(folder, LONG)
    wait_for(folder, ranks[0])
    ranks[victim].kill()
    other = ranks[1 - victim]
    _, errors = other.communicate(timeout=30)
    assert ranks[victim].wait(5) == KILLED
    assert other.returncode == 3
    assert "one of the run's 2 processes has ended without a word" in errors
    assert f"put right: torchrun --nproc-per-node 2 -m mrn resume {folder}" in errors
    assert "Traceback" not in errors
    go_on(folder, whole)


@pytest.mark.parametrize("receivers", [[1], [0, 1]])
def test_a_signal_to_any_process_saves_once_and_ends_all(receivers, whole, tmp_path):
    folder = tmp_path / "run"
    ranks = start(folder, LONG)
    wait_for(folder, ranks[0])
    for rank in receivers:
        ranks[rank].send_signal(signal.SIGINT)
    (code, _, errors), (other_code, _, other_errors) = finish(ranks, 30)
    assert code == other_code == 130
    resume = f"SIGINT: saved; to go on: torchrun --nproc-per-node 2 -m mrn resume {folder}"
    assert errors.count(resume) == 1
    assert other_errors == ""  # one process speaks for both
    names = sorted(path.name for path in (folder / "checkpoints").glob("0*"))
    assert len(names) == 2
    assert names[0] == "000002-000000"
    epoch, cycle = map(int, names[1].split("-"))
    assert (epoch, 0 < cycle < 16) == (2, True)
    go_on(folder, whole)


@pytest.mark.parametrize(
    ("size", "options", "message"),
    [
        (3, [], "equally: give --episodes 3 --batch-size 63, or start another number"),
        (2, ["--batch-size=63"], "--batch-size 63 equally: give --batch-size 64"),
        (2, ["--buffer-size=60"], "at least 100 (2 episodes of 50 transitions stored at once)"),
        (2, ["--critic=unknown"], "unknown critic 'unknown'"),
    ],
)
def test_what_cannot_be_shared_is_refused_once(size, options, message, tmp_path):
    results = finish(start_team(size, *tiny(tmp_path / "run", *options)))
    assert sorted({code for code, *_ in results}) in ([2], [2, 3])
    said = "".join(errors for *_, errors in results)
    assert said.count("error: ") == 1
    assert message in said
    assert not (tmp_path / "run" / "metrics.csv").exists()


def test_a_taken_folder_is_left_alone(whole):
    before = {path: path.read_bytes() for path in whole.rglob("*") if path.is_file()}
    (code, _, errors), (_, _, others) = finish(start(whole, LONG))
    assert code == 2
    told = (
        f"holds a run already; to go on with it: torchrun --nproc-per-node 2 -m mrn resume {whole}"
    )
    assert told in errors
    assert others == ""
    assert {path: path.read_bytes() for path in whole.rglob("*") if path.is_file()} == before


def test_another_number_of_processes_is_refused_with_the_right_command(whole, tmp_path):
    alone = mrn("resume", whole, "--epochs=3")
    assert alone.returncode == 2
    expected = f"{whole} is a run of 2 processes, not of 1: to go on with it: "
    assert f"{expected}torchrun --nproc-per-node 2 -m mrn resume {whole}" in alone.stderr
    assert mrn(*tiny(tmp_path / "one", "--epochs=1")).returncode == 0
    # Three could not even divide its episodes; but that is not what is wrong.
    results = finish(start_team(3, "resume", tmp_path / "one", "--epochs=2"))
    assert [code for code, *_ in results] == [2, 2, 2]
    told = f"is a run of 1 process, not of 3: to go on with it: mrn resume {tmp_path / 'one'}"
    assert "".join(errors for *_, errors in results).count(told) == 1


def test_an_environment_that_fails_in_one_process_is_named_once(tmp_path):
    ranks = start(tmp_path / "run", task="tests.envs.custom_envs:RaisesInOne-v0")
    (code, _, errors), (other_code, _, other_errors) = finish(ranks, 60)
    assert code == other_code == 3
    assert errors == ""
    assert "RuntimeError: a fuse has blown" in other_errors


def test_torchrun_starts_again_after_a_kill_and_ends_at_ctrl_c(whole, tmp_path):
    """As a user does it, with a torchrun that is to start the processes once more."""
    folder = tmp_path / "run"
    options = ("--standalone", "--nproc-per-node", "2", "--max-restarts", "1", "-m", "mrn")
    process, terminal = on_a_terminal(TORCHRUN, *options, *tiny(folder, LONG, "--resume"))
    wait_for(folder, process)
    os.kill(children(process.pid)[1], signal.SIGKILL)
    until(lambda: b"resumed at epoch 2" in terminal.shown, process)
    terminal.press_ctrl_c()
    terminal.end(process)
    shown = terminal.shown
    assert shown.count(b"SIGINT: saved; to go on: torchrun --nproc-per-node 2 -m mrn resume") == 1
    assert len(metrics(folder)) == 1
    go_on(folder, whole)
