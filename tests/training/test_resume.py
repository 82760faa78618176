"""Resuming: nothing that is finished is trained again, nothing is lost."""

import json
import warnings

import pytest

import mrn
from mrn.training.rundir import read_about
from tests.reliability.helpers import same_run
from tests.training.helpers import TINY, metrics, same_weights, tiny_run


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def remove_checkpoints(folder):
    for path in sorted((folder / "checkpoints").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (folder / "checkpoints").rmdir()


def test_a_finished_run_is_left_as_it_is_with_or_without_checkpoints(tmp_path, capsys):
    agent = tiny_run(tmp_path / "run")
    for prepare in (lambda: None, lambda: remove_checkpoints(tmp_path / "run")):
        prepare()
        before = contents(tmp_path / "run")
        again = mrn.train("FetchReach", run_dir=tmp_path / "run", resume=True, **TINY)
        assert same_weights(agent, again)
        assert contents(tmp_path / "run") == before
        assert "is finished" in capsys.readouterr().out
    with pytest.raises(
        mrn.UserError, match="after 2 epochs, and it has no checkpoint to go on from"
    ):
        tiny_run(tmp_path / "run", epochs=3, resume=True)
    assert contents(tmp_path / "run") == before


def test_fewer_epochs_than_there_are_is_refused(tmp_path):
    tiny_run(tmp_path / "run", epochs=3)
    before = contents(tmp_path / "run")
    with pytest.raises(mrn.UserError, match="has 3 epochs already: --epochs must be at least 3"):
        tiny_run(tmp_path / "run", epochs=2, resume=True)
    assert contents(tmp_path / "run") == before


def test_a_kill_in_the_very_first_write_leaves_a_folder_that_can_be_used(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".config.json.new").write_text('{"conf')
    tiny_run(folder, epochs=1)
    assert len(metrics(folder)) == 1
    other = tmp_path / "other"
    other.mkdir()
    (other / ".config.json.new").write_text("")
    tiny_run(other, epochs=1, resume=True)
    assert same_run(folder, other)


def test_versions_that_changed_are_kept_and_warned_of(tmp_path):
    tiny_run(tmp_path / "run", epochs=1)
    file = tmp_path / "run" / "config.json"
    about = json.loads(file.read_text())
    now = about["versions"]
    about["versions"] = now | {"torch": "1.0"}
    file.write_text(json.dumps(about))
    with pytest.warns(UserWarning, match="other versions: torch was 1.0, now"):
        tiny_run(tmp_path / "run", resume=True)
    read = read_about(tmp_path / "run")
    assert read.versions == now
    assert read.earlier_versions == [now | {"torch": "1.0"}]
    assert int(read.machine["cores"]) >= 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny_run(tmp_path / "run", epochs=3, resume=True)
    assert read_about(tmp_path / "run").earlier_versions == read.earlier_versions


def test_stop_at_a_success_rate_and_go_on_later(tmp_path, monkeypatch):
    from mrn.training import loop
    from mrn.training.evaluate import Evaluation

    rates = iter([0.2, 0.96, 0.5, 0.97])
    monkeypatch.setattr(loop, "evaluate", lambda *_: Evaluation(6, next(rates), 1.0, 1))
    tiny_run(tmp_path / "run", epochs=4, stop_at=0.95)
    assert [row["success"] for row in metrics(tmp_path / "run")] == ["0.2", "0.96"]
    before = contents(tmp_path / "run")
    tiny_run(tmp_path / "run", epochs=4, stop_at=0.95, resume=True)  # finished
    assert contents(tmp_path / "run") == before
    tiny_run(tmp_path / "run", epochs=4, resume=True)
    assert [row["success"] for row in metrics(tmp_path / "run")] == ["0.2", "0.96", "0.5", "0.97"]


def test_callbacks_see_each_epoch_when_it_is_saved_and_can_end_training(tmp_path):
    seen = []

    def callback(agent, row):
        saved = mrn.load(tmp_path / "run")
        seen.append((row["epoch"], same_weights(agent, saved), len(metrics(tmp_path / "run"))))
        return row["epoch"] == 2

    tiny_run(tmp_path / "run", epochs=4, callbacks=[callback])
    assert seen == [(1, True, 1), (2, True, 2)]
    tiny_run(tmp_path / "run", epochs=4, resume=True)
    tiny_run(tmp_path / "whole", epochs=4)
    assert same_run(tmp_path / "run", tmp_path / "whole")


def test_the_same_run_gives_the_same_bytes(tmp_path):
    """The library orders its header differently from save to save; ours do not differ."""
    tiny_run(tmp_path / "a", epochs=1)
    agent = mrn.load(tmp_path / "a")
    written = (tmp_path / "a" / "latest.safetensors").read_bytes()
    for i in range(8):
        agent.save(tmp_path / f"{i}.safetensors")
        assert (tmp_path / f"{i}.safetensors").read_bytes() == written
    assert same_weights(mrn.load(tmp_path / "0.safetensors"), agent)
