"""Storage of searches: a journal that survives kills, and that Optuna itself reads."""

import json
import threading
import time
from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from mrn.sweeps.study import Study, _JournalLock
from mrn.utils.errors import UserError
from tests.commands import FORKS, until
from tests.sweeps.test_tuning import SEARCH


def hold(path: Path) -> None:
    lock = _JournalLock(path)
    lock.acquire()
    path.with_name("held").touch()
    time.sleep(60)


def fill(study: Study) -> None:
    """Add a complete trial and a running one."""
    for index in range(2):
        trial = study.add()
        for step in (1, 2):
            study.report(trial.number, step, 0.25 * step)
        if index == 0:
            study.end(trial.number, "complete")


def test_trials_are_read_back(tmp_path):
    study = Study(tmp_path, SEARCH)
    fill(study)
    again = Study(tmp_path, SEARCH).trials()
    assert again == study.trials()
    assert [trial.state for trial in again] == ["complete", "running"]
    assert again[0].curve == (0.25, 0.5)
    assert again[0].success == 0.5


def test_journal_is_json_that_optuna_reads(tmp_path):
    study = Study(tmp_path, SEARCH)
    fill(study)
    for line in study.path.read_text().splitlines():
        assert isinstance(json.loads(line), dict)
    storage = JournalStorage(JournalFileBackend(str(study.path)))
    loaded = optuna.load_study(storage=storage, study_name="mrn")
    assert loaded.best_value == 0.5
    assert loaded.best_params == study.trials()[0].settings
    assert {path.name for path in tmp_path.iterdir()} == {"study.jsonl", "study.lock"}


def test_torn_line_is_removed_before_the_next_write(tmp_path):
    study = Study(tmp_path, SEARCH)
    fill(study)
    expected = study.trials()
    with open(study.path, "ab") as journal:
        journal.write(b'{"op_code":4,"worker')  # power failure
    again = Study(tmp_path, SEARCH)
    assert again.trials() == expected
    again.end(1, "pruned")
    assert [trial.state for trial in Study(tmp_path, SEARCH).trials()] == ["complete", "pruned"]
    assert all(json.loads(line) for line in study.path.read_text().splitlines())


def test_lock_of_a_killed_process_is_released(tmp_path):
    study = Study(tmp_path, SEARCH)
    holder = FORKS.Process(target=hold, args=(study.path,), daemon=True)
    holder.start()
    until((tmp_path / "held").exists)
    writer = threading.Thread(target=fill, args=(study,), daemon=True)
    writer.start()
    writer.join(timeout=0.2)
    assert writer.is_alive()  # it waits for the lock
    holder.kill()
    writer.join(timeout=10)  # locks of Optuna would be held for 30 seconds
    assert not writer.is_alive()
    assert len(Study(tmp_path, SEARCH).trials()) == 2


@pytest.mark.parametrize("content", ["not JSON\nneither\n", '{"op_code": 0}\n{}\n', "[]\n[]\n"])
def test_damaged_journal_is_one_error(content, tmp_path):
    (tmp_path / "study.jsonl").write_text(content)
    with pytest.raises(UserError, match=r"study.jsonl is damaged: "):
        Study(tmp_path, SEARCH)
    assert (tmp_path / "study.jsonl").read_text() == content
