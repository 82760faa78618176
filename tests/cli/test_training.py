"""Tests of `mrn train`, `mrn resume` and `mrn eval`."""

import json
import re
import subprocess

import pytest
import torch

from mrn import Agent, Evaluation, cli
from tests.cli.helpers import exit_code, run_command
from tests.commands import MRN
from tests.commands import mrn as command
from tests.reliability.helpers import in_a_terminal
from tests.training.helpers import tiny_run

SMALL = ["--epochs=1", "--cycles=1", "--num-envs=4", "--gradient-steps=2", "--eval-episodes=4"]
SMALL += ["--hidden-dim=16", "--batch-size=32", "--buffer-size=400"]


def test_train_then_evaluate(tmp_path):
    words = [MRN, "train", "FetchReach", *SMALL, "--seed", "7"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "runs" / "FetchReach" / "ddpg-mrn+fast" / "seed-7"
    assert (folder / "latest.safetensors").exists()
    # Without a terminal, output is plain lines without escape codes.
    assert "\x1b" not in done.stdout
    assert re.search(r"epoch +1/1 +success +\d+%.*steps/s", done.stdout)
    assert re.search(r"replay \d+ MiB", done.stdout)
    assert f"tensorboard --logdir {folder.relative_to(tmp_path)}\n" in done.stdout
    for engine in ("envpool", "gymnasium"):
        result = command("eval", str(folder), "--episodes", "4", "--engine", engine)
        assert result.returncode == 0, result.stderr
        assert re.search(r"success at the last step +\d+\.\d%", result.stdout)
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    again = command("train", "FetchReach", *SMALL, "--seed", "7", cwd=tmp_path)
    assert again.returncode == 2
    assert f"mrn resume {folder.relative_to(tmp_path)}" in again.stderr
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before


def test_progress_bar_fits_80_columns(tmp_path):
    code, text = in_a_terminal(MRN, "train", "FetchReach", *SMALL, cwd=tmp_path, columns=80)
    assert code == 0
    assert re.search(r"epoch 1/1.*success.*steps/s.*left", text)
    lines = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line) for line in re.split(r"[\r\n]+", text)]
    bars = [line for line in lines if "━" in line]
    assert bars
    assert all(len(line) <= 80 and line.count("━") >= 10 for line in bars)
    assert all("steps/s" in line and "left" in line for line in bars)
    assert max(len(line) for line in lines if line.startswith(("epoch", "FetchReach"))) <= 80


def test_eval_states_how_the_best_epoch_was_chosen(tmp_path, monkeypatch, capsys):
    tiny_run(tmp_path / "run", epochs=1)
    words = ["eval", str(tmp_path / "run"), "--episodes=2", "--weights"]
    run_command(monkeypatch, *words, "best")
    assert re.search(
        r"epoch 1, the best of .* \(\d+\.\d%, biased upward\)", capsys.readouterr().out
    )
    run_command(monkeypatch, *words, "best", "--json")
    selection = json.loads(capsys.readouterr().out)["selection"]
    assert (selection["epoch"], selection["eval_episodes"]) == (1, 3)
    run_command(monkeypatch, *words, "latest")
    assert "biased" not in capsys.readouterr().out


def test_eval_prints_json(tmp_path, monkeypatch, capsys):
    tiny_run(tmp_path / "run", epochs=1)
    run_command(monkeypatch, "eval", str(tmp_path / "run"), "--json", "--episodes=5")
    results = json.loads(capsys.readouterr().out)
    low, high = results["interval_95"]
    assert 0 <= low <= results["success"] <= high <= 1
    assert high - low > 0.3  # wide, with only five episodes
    assert results["episodes"] == 5
    assert results["engine"] == "envpool"
    assert results["weights"] == str(tmp_path / "run" / "latest.safetensors")


def test_eval_prints_interval_engine_and_weights(tmp_path, monkeypatch, capsys):
    tiny_run(tmp_path / "a run", epochs=1)
    always = Evaluation(200, 1.0, 1.0, 3.0, "gymnasium")
    monkeypatch.setattr(Agent, "evaluate", lambda *_, **__: always)
    run_command(monkeypatch, "eval", str(tmp_path / "a run"))
    out = capsys.readouterr().out
    assert "100.0%  (95% Wilson interval: 98.1% to 100.0%)" in out
    assert "200 episodes on gymnasium" in out
    assert "latest.safetensors" in out


def test_help_lists_the_settings_of_the_algorithm(monkeypatch, capsys):
    assert exit_code(monkeypatch, "train", "--algo", "ddpg", "--help") == 0
    captured = capsys.readouterr()
    text = " ".join(captured.out.replace("│", " ").split())
    assert re.search(r"--tau FLOAT [A-Z].{,100} target .{,100}\(default: 0\.1\)", text)
    assert captured.err == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--discount", "1.0"], "discount must be below 1, got 1.0"),
        (["--hidden-dim", "100000000"], "hidden_dim must be at most 16384"),
        (["--batch-size", "99999999999"], "batch_size must be at most"),
        (["--threads", "100000"], "threads must be at most 1024"),
        (["--device", "cuda"], "PyTorch finds no GPU here.*Use cpu"),
        (["--stop-at", "95"], "stop_at must be at most 1"),
        (["--config", "no/such/config.json"], "cannot read no/such/config.json"),
        (["--env-kwargs", '{"a": 1}'], "env_kwargs only applies to custom environments"),
        (["--algo", "no_lab:X"], "there is no module 'no_lab'"),
        (
            ["--target-policy-noise", "0.1"],
            "target_policy_noise is a setting of td3, not of ddpg: choose one of these",
        ),
        (
            ["--algo=gcsl", "--discount=0.9"],
            "discount is a setting of ddpg, td3, sac, wgcsl, mher, .*mqe, not",
        ),
        (["--algo=sac", "--no-discount-weight"], "discount_weight is a setting of wgcsl, not of"),
        (["--algo", "gcsl", "--critic", "bvn"], "learns without a critic: leave 'bvn' out"),
        (["--critic", "none"], "algorithm 'ddpg' needs a critic"),
        (["--num-envs", "1000000000000000000"], "num_envs must be at most 100000"),
        (["--buffer-size", "1" + "0" * 30], "buffer_size must be at most"),
        (["--stop-at", "0.9", "--eval-episodes", "0"], "stop_at needs evaluations"),
        (["--seed", "1" + "0" * 400], "seed must be at most 4.29497e.09, got 10000"),
    ],
)
def test_invalid_settings_exit_before_writing(options, message, tmp_path, monkeypatch, capsys):
    if "cuda" in options and torch.cuda.is_available():
        options = ["--device", "cuda:99"]
        message = "unknown device"
    monkeypatch.chdir(tmp_path)
    task = [] if "--config" in options else ["FetchReach"]
    assert exit_code(monkeypatch, "train", *task, *options) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("option", "most"),
    [
        ("epochs", "1e.06"),
        ("checkpoint-every", "1e.06"),
        ("gradient-steps", "1e.06"),
        ("eval-episodes", "1e.06"),
        ("warmup-episodes", "1e.09"),
    ],
)
def test_counts_have_an_upper_bound(option, most, monkeypatch, capsys):
    monkeypatch.setattr(cli.training, "_run", lambda *_: pytest.fail("it was accepted"))
    assert exit_code(monkeypatch, "train", "FetchReach", f"--{option}", "1" + "0" * 30) == 2
    name = option.replace("-", "_")
    assert re.search(f"^error: {name} must be at most {most}, got 1000", capsys.readouterr().err)
    assert exit_code(monkeypatch, "train", "FetchReach", f"--{option}", "1e30") == 2  # not an int
    assert "1e30" in capsys.readouterr().err
