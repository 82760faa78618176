"""Resuming: nothing that is finished is trained again, nothing is lost."""

import json
import os
import signal
import time
import warnings
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import mrn
from mrn import cli
from mrn.envs import make_envs
from mrn.runs.layout import checkpoint_folders
from mrn.runs.provenance import read_config, read_run_info
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


def test_an_interrupted_epoch_has_taken_the_time_before_too(tmp_path, monkeypatch):
    play, waited = trainer.play, [0.0]

    def slow_then_asked_to_end(*args):
        play(*args)
        if not (tmp_path / "run" / "checkpoints").exists():
            waited[0] += 1000
            os.kill(os.getpid(), signal.SIGTERM)

    now = SimpleNamespace(perf_counter=lambda: time.perf_counter() + waited[0])
    monkeypatch.setattr("mrn.training.clock.time", now)
    monkeypatch.setattr(trainer, "play", slow_then_asked_to_end)
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
    assert float(second["rollout_seconds"]) < clock["rollout"]  # an epoch of its own


def test_a_checkpoint_of_before_there_was_a_clock(tmp_path):
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


def test_versions_that_changed_are_kept_and_warned_of(tmp_path):
    tiny_run(tmp_path / "run", epochs=1)
    file = tmp_path / "run" / "config.json"
    about = json.loads(file.read_text())
    now = about["versions"]
    before = now | {"torch": "1.0", "commit": "abc"}
    about["versions"] = before
    about["machine"]["cpu"] = "Abacus"
    file.write_text(json.dumps(about))
    told = "otherwise: torch was 1.0, now .*; commit was abc, now .*; cpu was Abacus, now"
    with pytest.warns(UserWarning, match=told):
        tiny_run(tmp_path / "run", resume=True)
    read = read_run_info(tmp_path / "run")
    assert read.versions == now
    place = {"cpu": "Abacus", "threads": "1", "device": "cpu"}
    assert read.earlier_versions == [before | place]
    assert int(read.machine["cores"]) >= 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny_run(tmp_path / "run", epochs=3, resume=True)
    assert read_run_info(tmp_path / "run").earlier_versions == read.earlier_versions


def test_stop_at_a_success_rate_and_go_on_later(tmp_path, monkeypatch):
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


@pytest.mark.parametrize("every", [1, 5])
def test_a_run_that_a_callback_ended_goes_on_from_there(tmp_path, every):
    tiny_run(tmp_path / "whole", epochs=3)
    options = {"epochs": 3, "checkpoint_every": every}
    tiny_run(tmp_path / "run", callbacks=[lambda agent, row: row["epoch"] == 2], **options)
    assert [path.name for path in checkpoint_folders(tmp_path / "run")][-1] == "000003-000000"
    tiny_run(tmp_path / "run", resume=True, **options)
    assert same_run(tmp_path / "run", tmp_path / "whole")


def test_a_callback_that_predicts_with_noise_does_not_change_training(tmp_path):
    observation = {"observation": np.zeros(10), "desired_goal": np.zeros(3)}
    noisy = [lambda agent, row: agent.predict(observation, deterministic=False) and None]
    tiny_run(tmp_path / "watched", callbacks=noisy)
    tiny_run(tmp_path / "alone")
    assert same_run(tmp_path / "watched", tmp_path / "alone")


def test_all_that_may_be_changed_can_be_typed_and_is_in_force(tmp_path, monkeypatch):
    """The remedy for a slow worker is a longer time: it must be one that `mrn resume` takes."""
    tiny_run(tmp_path / "run", task=WALK, epochs=1, async_envs=True)
    made = []

    def spy(*arguments, **options):
        made.append(arguments[-2:])  # of an engine the last two: workers, env_timeout
        return make_envs(*arguments, **options)

    monkeypatch.setattr("mrn.training.loop.make_envs", spy)
    asked = {
        "epochs": "2", "stop_at": "0.99", "device": "cpu", "threads": "1",
        "env_timeout": "5", "checkpoint_every": "3",
    }  # fmt: skip
    assert set(asked) == set(MUTABLE_SETTINGS) - {"async_envs"}  # which `mrn train --resume` takes
    options = [f"--{name.replace('_', '-')}={value}" for name, value in asked.items()]
    monkeypatch.setattr("sys.argv", ["mrn", "resume", str(tmp_path / "run"), *options])
    cli.main()
    assert len(metrics(tmp_path / "run")) == 2
    config = read_run_info(tmp_path / "run").config
    assert {name: str(getattr(config, name)) for name in asked} == asked | {"env_timeout": "5.0"}
    assert made == [(True, 5.0)] * 2  # those of training, and of evaluation


def test_what_cannot_go_on_is_left_alone(tmp_path):
    """A finished run whose checkpoints are gone, and perhaps its metrics, is not overwritten."""
    folder = tmp_path / "run"
    tiny_run(folder)
    remove_checkpoints(folder)
    (folder / "checkpoints").mkdir()  # a removal that was cut short
    before = contents(folder)
    with pytest.raises(mrn.UserError, match="no checkpoint to go on from"):
        tiny_run(folder, epochs=4, resume=True)
    assert contents(folder) == before
    metrics_file = folder / "metrics.csv"
    metrics_file.write_bytes(metrics_file.read_bytes()[:-1])
    before = contents(folder)
    with pytest.raises(mrn.UserError, match="cut off.*no checkpoint to go on from"):
        tiny_run(folder, resume=True)
    assert contents(folder) == before


def test_settings_are_as_they_were_when_no_checkpoint_is_whole(tmp_path):
    folder = tmp_path / "run"
    tiny_run(folder)
    for path in checkpoint_folders(folder):
        (path / "complete").write_text("no")
    before = contents(folder)
    with pytest.raises(mrn.UserError, match="no checkpoint in .* is whole"):
        tiny_run(folder, epochs=4, resume=True)
    assert contents(folder) == before


def test_workers_leave_the_training_process_as_it_is(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    tiny_run(tmp_path / "run", task="tests.envs.custom_envs:Walk-v0", async_envs=True, epochs=1)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_whose_notice_nobody_can_read_is_remembered():
    with InterruptHandler("saving") as interruption:
        stderr = os.dup(2)
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 2)
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            os.dup2(stderr, 2)
        assert interruption.received == signal.SIGINT


def test_constructor_arguments_are_what_json_gives_back():
    config = mrn.Config.of("Pond-v0", env_kwargs={"size": (3, 4)})
    assert config.env_kwargs == {"size": [3, 4]}
    for value in ({1, 2}, float("nan")):
        with pytest.raises(mrn.UserError, match="env_kwargs must be what JSON can hold"):
            mrn.Config.of("Pond-v0", env_kwargs={"size": value})


def test_a_run_keeps_the_threads_it_was_begun_with(tmp_path, monkeypatch):
    """Two cores now, four later: with as many threads its sums would be rounded otherwise."""
    monkeypatch.setattr("mrn.utils.device._cores", lambda: 2)
    used = []

    @contextmanager
    def noted(count):
        used.append(count)
        yield

    monkeypatch.setattr("mrn.training.loop.torch_threads", noted)
    tiny_run(tmp_path, epochs=1, threads=None)
    monkeypatch.setattr("mrn.utils.device._cores", lambda: 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny_run(tmp_path, epochs=2, threads=None, resume=True)
    with pytest.warns(UserWarning, match="threads was 2, now 3"):  # asked for
        tiny_run(tmp_path, epochs=3, threads=3, resume=True)
    tiny_run(tmp_path, epochs=4, threads=None, resume=True)
    assert [count for count in used if count != 1] == [2, 2, 3, 3]
    assert read_config(tmp_path).threads is None  # a setting for this machine is no other's
    assert read_run_info(tmp_path).machine["threads"] == "3"


def test_a_run_stays_on_its_kind_of_device_if_that_is_there(tmp_path, monkeypatch):
    tiny_run(tmp_path, epochs=1)
    asked = []
    monkeypatch.setattr(
        "mrn.training.loop.find_device", lambda name: asked.append(name) or torch.device("cpu")
    )
    tiny_run(tmp_path, epochs=2, resume=True)  # where there may be a GPU by now
    file = tmp_path / "config.json"
    file.write_text(file.read_text().replace('"device": "cpu"', '"device": "cuda"'))
    with pytest.warns(UserWarning, match="device was cuda, now cpu"):
        tiny_run(tmp_path, epochs=3, resume=True)
    assert asked == ["cpu", "auto"]


def test_an_environment_that_has_changed_is_refused(tmp_path):
    tiny_run(tmp_path, WALK, epochs=1)
    file = tmp_path / "config.json"
    about = json.loads(file.read_text())
    about["task"] |= {"horizon": 7, "action_high": [10.0]}
    file.write_text(json.dumps(about))
    before = contents(tmp_path)
    with pytest.raises(mrn.UserError, match="has changed since: action_high was") as refused:
        tiny_run(tmp_path, WALK, epochs=2, resume=True)
    assert "horizon was 7, now " in str(refused.value)
    assert contents(tmp_path) == before
