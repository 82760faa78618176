"""Tests of the `mrn` command itself: version, renamed commands, errors and exit codes."""

import errno
import os
import re
import subprocess

import pytest

import mrn
from tests.cli.helpers import exit_code, run_command
from tests.commands import MRN
from tests.commands import mrn as command


def test_version(monkeypatch, capsys):
    run_command(monkeypatch, "--version")
    assert capsys.readouterr().out.split() == ["mrn", mrn.__version__]


@pytest.mark.parametrize("arguments", [["agents"], ["agents", "--help"]])
def test_renamed_command_names_the_new_one(arguments, monkeypatch, capsys):
    assert exit_code(monkeypatch, *arguments) == 2
    assert capsys.readouterr().err == "error: mrn agents was renamed to mrn algos\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "FetchReech"], "unknown task 'FetchReech'. Did you mean 'FetchReach'?"),
        (["train", "MyReach-v0"], "name a custom environment package.module:Id-v0"),
        (["resume", "zoo:FetchReach"], "cannot be resumed: pretrained policies have no checkpoint"),
        (["train", "FetchReach", "--critic", "mmrn"], "unknown critic 'mmrn'. Did you mean 'mrn'?"),
        (["train", "FetchReach", "--engine", "envpol"], "Did you mean 'envpool'?"),
        (["train", "FetchReach", "--device", "cpuu"], "Did you mean 'cpu'?"),
        (["train", "FetchReach", "--algo", "ddgp"], "Did you mean 'ddpg'?"),
        (["train", "FetchReach", "--batch-size", "0"], "batch_size must be at least 1"),
        (["train", "FetchReach", "--batch-size", "x"], "batch-size"),
        (["train", "FetchReach", "--no-such-option"], "no-such-option"),
        (["train", "CartPole-v1"], "is not a goal environment"),
        (
            ["train", "tests.envs.custom_envs:Unbounded-v0"],
            "must be a bounded, one-dimensional Box",
        ),
        (["resume", "no/such/run"], "is not a run folder"),
        (["train", "FetchReach", "--run-dir", "/proc/no/run"], "cannot create the run folder"),
        (["eval", "no/such/run"], "no run folder or weights file"),
    ],
)
def test_user_errors_print_one_message_and_exit_with_2(arguments, message, tmp_path):
    result = command(*arguments, cwd=tmp_path)
    assert result.returncode == 2, result.stderr
    assert message in result.stderr + result.stdout
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.rglob("*.safetensors"))


LONG = "a" * 300
ACTIONS = "(read|read or write|create the run folder)"
"""Longer than the file name limit of common file systems."""


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "FetchReach", "--run-dir", LONG],
        ["resume", LONG],
        ["eval", LONG],
        ["inspect", LONG],
        ["report", LONG],
        ["figures", LONG],
        ["video", "zoo:FetchReach", f"{LONG}.mp4"],
        ["export", "zoo:FetchReach", f"{LONG}.onnx"],
    ],
)
def test_file_name_too_long(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert exit_code(monkeypatch, *arguments) == 2
    assert re.fullmatch(
        rf"error: cannot {ACTIONS} \S*{LONG}\S*: File name too long\n", capsys.readouterr().err
    )


@pytest.mark.parametrize("words", [["eval"], ["resume"], ["train", "FetchReach", "--run-dir"]])
def test_folder_without_permission(words, tmp_path, monkeypatch, capsys):
    stat = os.stat

    def deny(path, **options):  # patched, because root has all permissions
        if "sealed" in str(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, **options)

    monkeypatch.setattr("os.stat", deny)
    monkeypatch.setattr("os.lstat", deny)
    monkeypatch.chdir(tmp_path)
    assert exit_code(monkeypatch, *words, "sealed/run") == 2
    message = rf"error: cannot {ACTIONS} sealed/run\S*: Permission denied\n"
    assert re.fullmatch(message, capsys.readouterr().err)


def test_closed_pipe_ends_a_command_silently():
    process = subprocess.Popen([MRN, "tasks"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.communicate(timeout=60)[1] == b""
    assert process.returncode == 1
