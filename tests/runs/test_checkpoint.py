"""Resuming: finished epochs are not repeated, and nothing is lost."""

import json
import os
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest

import mrn
from mrn import cli
from mrn.envs import make_envs
from mrn.runs.layout import checkpoint_folders
from mrn.runs.provenance import read_run_info
from mrn.runs.run_dir import MUTABLE_SETTINGS
from mrn.training import trainer
from mrn.utils.errors import Interrupted
from mrn.utils.files import checksum
from mrn.utils.signals import InterruptHandler
from tests.reliability.helpers import same_run
from tests.training.helpers import TINY, metrics, same_weights, tiny_run

WALK = "tests.envs.custom_envs:Walk-v0"


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def remove_checkpoints(folder):
    for path in sorted((folder / "checkpoints").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (folder / "checkpoints").rmdir()


def test_finished_run_is_not_changed_with_or_without_checkpoints(tmp_path, capsys):
    agent = tiny_run(tmp_path / "run")
    for prepare in (lambda: None, lambda: remove_checkpoints(tmp_path / "run")):
        prepare()
        before = contents(tmp_path / "run")
        again = mrn.train("FetchReach", run_dir=tmp_path / "run", resume=True, **TINY)
        assert same_weights(agent, again)
        assert contents(tmp_path / "run") == before
        assert "is finished" in capsys.readouterr().out
    with pytest.raises(
        mrn.UserError, match="after 2 epochs, and it has no checkpoint to resume from"
    ):
        tiny_run(tmp_path / "run", epochs=3, resume=True)
    assert contents(tmp_path / "run") == before


def test_fewer_epochs_than_completed_are_rejected(tmp_path):
    tiny_run(tmp_path / "run", epochs=3)
    before = contents(tmp_path / "run")
    with pytest.raises(
        mrn.UserError, match="already has 3 epochs; epochs must be at least 3, got 2"
    ):
        tiny_run(tmp_path / "run", epochs=2, resume=True)
    assert contents(tmp_path / "run") == before


def test_folder_is_usable_after_a_kill_during_the_first_write(tmp_path):
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


def test_resuming_removes_temporary_files_of_a_killed_process(tmp_path):
    tiny_run(tmp_path / "run", epochs=1)
    left = [tmp_path / "run" / name for name in (".latest.1a.new", "checkpoints/.replay.2b.new")]
    for file in left:
        file.write_bytes(b"half of it")
    tiny_run(tmp_path / "run", epochs=2, resume=True)
    assert not any(file.exists() for file in left)


def test_epoch_time_includes_the_time_before_an_interruption(tmp_path, monkeypatch):
    collect, waited = trainer.collect_episodes, [0.0]

    def slow_then_interrupted(*args):
        collect(*args)
        if not (tmp_path / "run" / "checkpoints").exists():
            waited[0] += 1000
            os.kill(os.getpid(), signal.SIGTERM)

    now = SimpleNamespace(perf_counter=lambda: time.perf_counter() + waited[0])
    monkeypatch.setattr("mrn.runs.clock.time", now)
    monkeypatch.setattr(trainer, "collect_episodes", slow_then_interrupted)
    with pytest.raises(Interrupted):
        tiny_run(tmp_path / "run")
    saved = checkpoint_folders(tmp_path / "run")[-1]
    assert saved.name == "000001-000001"
    clock = json.loads((saved / "checkpoint.json").read_text())["clock"]
    assert clock["rollout"] > 1000
    assert clock["steps"] == 100  # 2 episodes of 50
    tiny_run(tmp_path / "run", resume=True)
    first, second = metrics(tmp_path / "run", timings=True)
    assert float(first["rollout_seconds"]) > clock["rollout"]
    assert float(first["update_seconds"]) > clock["update"]
    spent = float(first["rollout_seconds"]) + float(first["update_seconds"])
    assert float(first["steps_per_second"]) == pytest.approx(200 / spent, rel=0.02)
    assert float(second["rollout_seconds"]) < clock["rollout"]  # a new epoch


def test_checkpoint_without_a_clock_loads(tmp_path):
    tiny_run(tmp_path / "whole")
    tiny_run(tmp_path / "run", epochs=1)
    for folder in checkpoint_folders(tmp_path / "run"):
        about = json.loads((folder / "checkpoint.json").read_text())
        del about["clock"]
        text = json.dumps(about).encode()
        (folder / "checkpoint.json").write_bytes(text)
        (folder / "complete").write_text(checksum(text))
    tiny_run(tmp_path / "run", resume=True)
    assert same_run(tmp_path / "whole", tmp_path / "run")


def test_stop_at_a_success_rate_and_resume_later(tmp_path, monkeypatch):
    from mrn.training import loop
    from mrn.training.evaluation import Evaluation

    rates = iter([0.2, 0.96, 0.5, 0.97])
    monkeypatch.setattr(loop, "evaluate", lambda *_, **__: Evaluation(6, next(rates), 1.0, 1))
    tiny_run(tmp_path / "run", epochs=4, stop_at=0.95)
    assert [row["success"] for row in metrics(tmp_path / "run")] == ["0.2", "0.96"]
    before = contents(tmp_path / "run")
    tiny_run(tmp_path / "run", epochs=4, stop_at=0.95, resume=True)  # finished
    assert contents(tmp_path / "run") == before
    tiny_run(tmp_path / "run", epochs=4, resume=True)
    assert [row["success"] for row in metrics(tmp_path / "run")] == ["0.2", "0.96", "0.5", "0.97"]


def test_callbacks_run_after_saving_and_can_stop_training(tmp_path):
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


def test_equal_policies_give_identical_files(tmp_path):
    """The library writes its header in random order; ours is sorted."""
    tiny_run(tmp_path / "a", epochs=1)
    agent = mrn.load(tmp_path / "a")
    written = (tmp_path / "a" / "latest.safetensors").read_bytes()
    for i in range(8):
        agent.save(tmp_path / f"{i}.safetensors")
        assert (tmp_path / f"{i}.safetensors").read_bytes() == written
    assert same_weights(mrn.load(tmp_path / "0.safetensors"), agent)


@pytest.mark.parametrize("every", [1, 5])
def test_run_stopped_by_a_callback_resumes_bit_identically(tmp_path, every):
    tiny_run(tmp_path / "whole", epochs=3)
    options = {"epochs": 3, "checkpoint_every": every}
    tiny_run(tmp_path / "run", callbacks=[lambda agent, row: row["epoch"] == 2], **options)
    assert [path.name for path in checkpoint_folders(tmp_path / "run")][-1] == "000003-000000"
    tiny_run(tmp_path / "run", resume=True, **options)
    assert same_run(tmp_path / "run", tmp_path / "whole")


def test_noisy_predictions_in_a_callback_do_not_affect_training(tmp_path):
    observation = {"observation": np.zeros(10), "desired_goal": np.zeros(3)}
    noisy = [lambda agent, row: agent.predict(observation, deterministic=False) and None]
    tiny_run(tmp_path / "watched", callbacks=noisy)
    tiny_run(tmp_path / "alone")
    assert same_run(tmp_path / "watched", tmp_path / "alone")


def test_resume_command_applies_all_mutable_settings(tmp_path, monkeypatch):
    """The remedy for a slow worker is a longer timeout, so `mrn resume` must accept it."""
    tiny_run(tmp_path / "run", task=WALK, epochs=1, async_envs=True)
    made = []

    def spy(*arguments, **options):
        made.append(arguments[-2:])  # async_envs, env_timeout
        return make_envs(*arguments, **options)

    monkeypatch.setattr("mrn.training.setup.make_envs", spy)
    given = {
        "epochs": "2", "stop_at": "0.99", "device": "cpu", "threads": "1",
        "env_timeout": "5", "checkpoint_every": "3",
    }  # fmt: skip
    assert set(given) == set(MUTABLE_SETTINGS) - {"async_envs"}  # an option of `mrn train --resume`
    options = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    monkeypatch.setattr("sys.argv", ["mrn", "resume", str(tmp_path / "run"), *options])
    cli.main()
    assert len(metrics(tmp_path / "run")) == 2
    config = read_run_info(tmp_path / "run").config
    assert {name: str(getattr(config, name)) for name in given} == given | {"env_timeout": "5.0"}
    assert made == [(True, 5.0)] * 2  # for training and for evaluation


def test_run_without_checkpoints_is_not_overwritten(tmp_path):
    """A finished run without checkpoints, and perhaps without metrics, is not overwritten."""
    folder = tmp_path / "run"
    tiny_run(folder)
    remove_checkpoints(folder)
    (folder / "checkpoints").mkdir()  # an incomplete removal
    before = contents(folder)
    with pytest.raises(mrn.UserError, match="no checkpoint to resume from"):
        tiny_run(folder, epochs=4, resume=True)
    assert contents(folder) == before
    metrics_file = folder / "metrics.csv"
    metrics_file.write_bytes(metrics_file.read_bytes()[:-1])
    before = contents(folder)
    with pytest.raises(mrn.UserError, match="truncated.*no checkpoint to resume from"):
        tiny_run(folder, resume=True)
    assert contents(folder) == before


def test_nothing_changes_if_no_checkpoint_is_valid(tmp_path):
    folder = tmp_path / "run"
    tiny_run(folder)
    for path in checkpoint_folders(folder):
        (path / "complete").write_text("no")
    before = contents(folder)
    with pytest.raises(mrn.UserError, match="no checkpoint in .* is valid"):
        tiny_run(folder, epochs=4, resume=True)
    assert contents(folder) == before


def test_workers_do_not_change_signal_handlers(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    tiny_run(tmp_path / "run", task="tests.envs.custom_envs:Walk-v0", async_envs=True, epochs=1)
    assert signal.getsignal(signal.SIGINT) is before


def test_signal_is_stored_if_stderr_is_closed():
    with InterruptHandler("saving") as handler:
        stderr = os.dup(2)
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 2)
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            os.dup2(stderr, 2)
        assert handler.received == signal.SIGINT


def test_changed_environment_is_rejected(tmp_path):
    tiny_run(tmp_path, WALK, epochs=1)
    file = tmp_path / "config.json"
    about = json.loads(file.read_text())
    about["task"] |= {"horizon": 7, "action_high": [10.0]}
    file.write_text(json.dumps(about))
    before = contents(tmp_path)
    with pytest.raises(
        mrn.UserError, match="has changed since the run started: action_high"
    ) as error:
        tiny_run(tmp_path, WALK, epochs=2, resume=True)
    assert "horizon was 7, now " in str(error.value)
    assert contents(tmp_path) == before
