"""Tests of hints in error messages: each suggestion must work."""

import re

import pytest

import mrn
from mrn.envs import find_task
from tests.cli.helpers import exit_code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "FetchReach", "--lr", "0.1"], "unknown option --lr. Did you mean --learning-r"),
        (["train", "FetchReach", "--bs", "8"], "Did you mean --batch-size or --buffer-size?"),
        (["train", "FetchReach", "--no-such-option"], "run mrn train --help"),
        (["eval", "zoo:FetchReach", "--episods", "3"], "run mrn eval --help"),
        (["eval", "FetchReach"], "zoo:FetchReach is a pretrained policy for this task"),
        (["video", "PenFull"], "it is a task: train a policy first, with `mrn train PenFull`"),
    ],
)
def test_error_names_the_fix(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert exit_code(monkeypatch, *arguments) == 2
    shown = capsys.readouterr()
    assert message in shown.out + shown.err


@pytest.mark.parametrize(
    "name", ["FetchReech", "FetchReech-v1", "FetchPushDens", "PointMaze_Umaze"]
)
def test_suggested_task_exists(name):
    with pytest.raises(mrn.UserError, match="Did you mean") as error:
        find_task(name)
    (suggestion,) = re.findall("Did you mean '(.*?)'", str(error.value))
    shift = -1.0 if "Maze" in name else 0.0
    assert find_task(suggestion, shift)
    assert "-v1" not in str(error.value).partition("Available")[2]  # needs mujoco-py


@pytest.mark.parametrize("name", ["AdroitHandDor-v1", "FrankaKitchn-v1"])
def test_unusable_environment_is_not_suggested(name):
    with pytest.raises(mrn.UserError, match=f"unknown task '{name}'. Available"):
        find_task(name)


@pytest.mark.filterwarnings("ignore:.*out of date")
def test_old_version_without_a_simulator_names_the_latest():
    with pytest.raises(mrn.UserError, match=r"unmaintained; use FetchSlideDense-v4 instead$"):
        find_task("FetchSlideDense-v1")


def test_shadowed_module_is_named_with_its_file():
    with pytest.raises(mrn.UserError, match=r"module 'queue' \(.*queue.py\) registers no environ"):
        find_task("queue:Mine-v0")
    with pytest.raises(mrn.UserError, match=r"module 'queue' \(.*queue.py\) has no 'small'"):
        mrn.train("FetchReach", critic="queue:small")


@pytest.mark.parametrize("callbacks", [print, 3, [3], "print"])
def test_callbacks_must_be_a_list_of_functions(callbacks, tmp_path):
    with pytest.raises(
        mrn.UserError, match="callbacks must be a list of functions or mrn.Callback objects"
    ):
        mrn.train("FetchReach", run_dir=tmp_path / "run", callbacks=callbacks)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("load", [mrn.load, mrn.Agent.load])
def test_path_must_be_a_path(load):
    with pytest.raises(mrn.UserError, match="must be a path, got 123"):
        load(123)
    with pytest.raises(mrn.UserError, match="run_dir must be a path, got 123"):
        mrn.train("FetchReach", run_dir=123)


def test_module_that_exits_is_one_error(tmp_path, monkeypatch):
    (tmp_path / "exits.py").write_text("import sys\nsys.exit('no license')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(mrn.UserError, match=r"'exits': SystemExit: no license \(.*py, line 2\)"):
        find_task("exits:Mine-v0")
