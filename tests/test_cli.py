"""The command line, as a user runs it."""

import re
import subprocess

import pytest

from tests.commands import MRN, mrn
from tests.reliability.helpers import in_a_terminal

SMALL = ["--epochs", "1", "--cycles", "1", "--episodes", "4", "--updates", "2"]
SMALL += ["--eval-episodes", "4", "--width", "16", "--batch-size", "32", "--capacity", "400"]


def test_train_then_evaluate(tmp_path):
    command = [MRN, "train", "FetchReach", *SMALL, "--seed", "7"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "runs" / "FetchReach" / "ddpg-mrn" / "seed-7"
    assert (folder / "latest.safetensors").exists()
    # No terminal: plain lines, no escape codes.
    assert "\x1b" not in done.stdout
    assert re.search(r"epoch +1/1 +success +\d+%.*steps/s", done.stdout)
    assert re.search(r"replay \d+ MiB", done.stdout)
    for engine in ("envpool", "gymnasium"):
        result = mrn("eval", str(folder), "--episodes", "4", "--engine", engine)
        assert result.returncode == 0, result.stderr
        assert re.search(r"success at the last step +\d+\.\d%", result.stdout)
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    again = mrn("train", "FetchReach", *SMALL, "--seed", "7", cwd=tmp_path)
    assert again.returncode == 2
    assert f"mrn resume {folder.relative_to(tmp_path)}" in again.stderr
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before


def test_tasks_and_critics_are_listed():
    tasks = mrn("tasks").stdout
    assert re.search(r"FetchPick .*FetchPickAndPlace-v4 .*25 .*3 .*4 .*50 .*50", tasks)
    assert len(re.findall(r"-v\d", tasks)) == 12
    critics = mrn("critics").stdout
    assert re.search(r"mrn-squared .*no .*140,656", critics)
    assert re.search(r"iqe .*union_j \[u_kj, max\(u_kj, v_kj\)\].*yes", critics)


def test_a_terminal_gets_a_progress_bar(tmp_path):
    code, text = in_a_terminal(MRN, "train", "FetchReach", *SMALL, cwd=tmp_path)
    assert code == 0
    assert "━" in text
    assert re.search(r"epoch 1/1.*success.*steps/s.*left", text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "FetchReech"], "unknown task 'FetchReech'. Did you mean 'FetchReach'?"),
        (["train", "FetchReach", "--critic", "mmrn"], "unknown critic 'mmrn'. Did you mean 'mrn'?"),
        (["train", "FetchReach", "--engine", "envpol"], "Did you mean 'envpool'?"),
        (["train", "FetchReach", "--device", "cpuu"], "Did you mean 'cpu'?"),
        (["train", "FetchReach", "--agent", "ddgp"], "Did you mean 'ddpg'?"),
        (["train", "FetchReach", "--batch-size", "0"], "batch_size must be at least 1"),
        (["train", "FetchReach", "--batch-size", "x"], "batch-size"),
        (["train", "FetchReach", "--no-such-option"], "no-such-option"),
        (["train", "CartPole-v1"], "is no goal environment"),
        (["train", "tests.envs.own_envs:Unbounded-v0"], "must be a bounded Box"),
        (["resume", "no/such/run"], "is no run folder"),
        (["train", "FetchReach", "--run-dir", "/proc/no/run"], "cannot make the run folder"),
        (["eval", "no/such/run"], "no run folder or weights file"),
    ],
)
def test_mistakes_get_one_message_and_exit_code_2(arguments, message, tmp_path):
    result = mrn(*arguments, cwd=tmp_path)
    assert result.returncode == 2, result.stderr
    assert message in result.stderr + result.stdout
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.rglob("*.safetensors"))
