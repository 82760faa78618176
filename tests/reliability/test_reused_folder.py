"""One writer: a run folder that is removed or reused while a run trains there."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from mrn.runs.lock import RunLock, is_held
from mrn.runs.null_run_dir import NullRunDir
from mrn.utils.errors import RunError
from tests.reliability.helpers import start, wait_for
from tests.reliability.kills import KILLED
from tests.training.helpers import tiny_run

LONG = "--cycles=6"


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_run_does_not_write_to_the_folder_of_another_run(tmp_path):
    """The first run loses its folder, in which a second one is then killed."""
    folder = tmp_path / "run"
    first = start(folder, LONG)
    wait_for(folder, first)
    first.send_signal(signal.SIGSTOP)
    shutil.rmtree(folder)
    second = start(folder, LONG, "--seed=7")
    wait_for(folder, second)
    second.kill()
    assert second.wait(timeout=30) == KILLED
    before = contents(folder)
    assert folder / ".lock" in before
    first.send_signal(signal.SIGCONT)
    _, errors = first.communicate(timeout=60)
    assert first.returncode == 3
    assert f"error: {folder} was removed, moved or replaced while this run was training" in errors
    assert "Traceback" not in errors
    assert "resume" not in errors
    assert contents(folder) == before


def test_removed_lock_file_does_not_let_a_second_process_in(tmp_path):
    folder = tmp_path / "run"
    first = start(folder, LONG)
    wait_for(folder, first)
    first.send_signal(signal.SIGSTOP)
    (folder / ".lock").unlink()
    before = contents(folder)
    second = start(folder, LONG, "--resume")
    _, errors = second.communicate(timeout=60)
    assert second.returncode == 2
    assert f"another process (PID unknown) is training in {folder}" in errors
    assert contents(folder) == before
    first.send_signal(signal.SIGCONT)
    _, errors = first.communicate(timeout=120)
    assert first.returncode == 0, errors


@pytest.mark.parametrize("change", ["removed", "moved", "replaced"])
def test_lock_notices_another_folder(tmp_path, change):
    folder = tmp_path / "run"
    folder.mkdir()
    lock, other_rank = RunLock(folder), NullRunDir(folder)
    other_rank.begin(None)
    for writer in (lock, other_rank):
        writer.check()
    if change == "moved":
        folder.rename(tmp_path / "elsewhere")
    else:
        shutil.rmtree(folder)
    if change == "replaced":
        folder.mkdir()  # often gets the inode number of a removed folder that is not open
        (folder / ".lock").write_text("of another process")
    for writer in (lock, other_rank):
        with pytest.raises(RunError, match="was removed, moved or replaced"):
            writer.check()
    lock.close()
    assert (folder / ".lock").exists() == (change == "replaced")


def test_other_machine_that_took_over_is_noticed(tmp_path):
    """On network storage, other machines see only the lock on the file."""
    lock = RunLock(tmp_path)
    (tmp_path / ".lock").unlink()
    lock.check()
    assert is_held(tmp_path)
    (tmp_path / ".lock").write_text("1\n")
    with pytest.raises(RunError, match="another process has taken over"):
        lock.check()
    lock.close()
    assert (tmp_path / ".lock").read_text() == "1\n"


def test_checkpoint_is_not_written_to_another_folder(tmp_path, monkeypatch):
    """The folder is replaced before each write of a checkpoint in turn."""
    calls = 0
    while True:
        calls += 1
        folder = tmp_path / f"run-{calls}"
        seen = []

        def replace_folder(self, _check=RunLock.check, _at=calls, _folder=folder, _seen=seen):
            _seen.append(1)
            if len(_seen) == _at:
                shutil.rmtree(_folder)
                (_folder / "checkpoints").mkdir(parents=True)
            _check(self)

        with monkeypatch.context() as context:
            context.setattr(RunLock, "check", replace_folder)
            try:
                tiny_run(folder, epochs=1, eval_episodes=0)
                break
            except RunError:
                assert os.listdir(folder) == ["checkpoints"]
                assert os.listdir(folder / "checkpoints") == []
    assert calls >= 8  # settings, weights, metrics, and five times in a checkpoint
