"""Tests of `mrn export` and `mrn video`."""

import sys

import onnx
import pytest
import torch

import mrn
from mrn.envs import find_task
from tests.cli.helpers import exit_code, run_command

WALK = "tests.envs.custom_envs:Walk-v0"
DRAWS = "tests.envs.custom_envs:Draws-v0"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Make an empty run folder in the current folder."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


def save_agent(task: str, folder) -> None:
    config = mrn.Config.of(task, hidden_dim=16)
    agent = mrn.Agent(config, find_task(task).spec, torch.device("cpu"))
    agent.save(folder / "latest.safetensors")


def test_export(run, tmp_path, monkeypatch, capsys):
    def error(*words):
        assert exit_code(monkeypatch, "export", "run", *words) == 2
        return capsys.readouterr().err

    assert "run has no latest.safetensors" in error("policy.onnx")
    save_agent(WALK, run)
    assert "must end with .onnx, got policy.pt" in error("policy.pt")
    (tmp_path / "file").touch()
    assert "file is a file" in error("file/policy.onnx")
    (tmp_path / "folder.onnx").mkdir()
    assert "is a folder" in error("folder.onnx")
    existing = tmp_path / "policy.onnx"
    existing.write_text("mine")
    assert "policy.onnx already exists; use force to overwrite it" in error("policy.onnx")
    assert existing.read_text() == "mine"
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "onnxscript", None)
        hint = "onnxscript is missing: pip install 'mrn-rl[onnx]'"
        assert hint in error("policy.onnx", "--force")
    assert existing.read_text() == "mine"
    run_command(monkeypatch, "export", "run", "policy.onnx", "--force")
    assert "Wrote policy.onnx: observation (2)" in capsys.readouterr().out
    onnx.checker.check_model(existing)


def test_video(run, tmp_path, monkeypatch, capsys):
    def video(*words):
        run_command(monkeypatch, "video", "run", *words, "--size", "64")
        return capsys.readouterr().out

    def error(*words):
        assert exit_code(monkeypatch, "video", "run", *words, "--size", "64") == 2
        return capsys.readouterr().err

    assert "run has no latest.safetensors" in error()
    save_agent(DRAWS, run)
    assert "must end with .mp4 or .gif, got video.avi" in error("video.avi")
    (tmp_path / "file").touch()
    assert "file is a file" in error("file/video.mp4")
    assert "a goal of tests.envs.custom_envs:Draws-v0 has 2 values" in error("--goal", "1,2,3")
    assert "episodes" in error("--episodes", "0")
    assert "2640 pixels on a side, but at most 2048" in error("--grid", "--episodes", "1089")
    for package, suffix in (("PIL.Image", "gif"), ("imageio_ffmpeg", "mp4")):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, package, None)
            name = package.partition(".")[0]
            hint = f"{name} is missing: pip install 'mrn-rl[video]'"
            assert hint in error(f"video.{suffix}")
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == ["latest.safetensors"]
    out = video("--episodes", "1")
    assert "Wrote run/video.mp4: " in out
    assert " of 1 episodes reach their goal, 96 x 80 pixels, 1.9 s" in out
    content = (run / "video.mp4").read_bytes()
    assert "run/video.mp4 already exists; use force to overwrite it" in error()
    assert (run / "video.mp4").read_bytes() == content
    video("--episodes", "2", "--force")
    assert (run / "video.mp4").read_bytes() != content
