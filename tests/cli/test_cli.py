"""The command line, as a user runs it."""

import errno
import json
import os
import re
import subprocess

import pytest
import torch

import mrn
from mrn import Agent, Evaluation, cli
from mrn.utils.errors import report_errors
from tests.commands import MRN
from tests.commands import mrn as command
from tests.reliability.helpers import in_a_terminal
from tests.training.helpers import tiny_run

SMALL = ["--epochs", "1", "--cycles", "1", "--episodes", "4", "--gradient-steps", "2"]
SMALL += [
    "--eval-episodes",
    "4",
    "--hidden-dim",
    "16",
    "--batch-size",
    "32",
    "--buffer-size",
    "400",
]


def test_train_then_evaluate(tmp_path):
    words = [MRN, "train", "FetchReach", *SMALL, "--seed", "7"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "runs" / "FetchReach" / "ddpg-mrn+fast" / "seed-7"
    assert (folder / "latest.safetensors").exists()
    # No terminal: plain lines, no escape codes.
    assert "\x1b" not in done.stdout
    assert re.search(r"epoch +1/1 +success +\d+%.*steps/s", done.stdout)
    assert re.search(r"replay \d+ MiB", done.stdout)
    for engine in ("envpool", "gymnasium"):
        result = command("eval", str(folder), "--episodes", "4", "--engine", engine)
        assert result.returncode == 0, result.stderr
        assert re.search(r"success at the last step +\d+\.\d%", result.stdout)
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    again = command("train", "FetchReach", *SMALL, "--seed", "7", cwd=tmp_path)
    assert again.returncode == 2
    assert f"mrn resume {folder.relative_to(tmp_path)}" in again.stderr
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before


def test_tasks_critics_and_agents_are_listed():
    tasks = command("tasks").stdout
    assert re.search(r"FetchPick .*FetchPickAndPlace-v4 .*25 .*3 .*4 .*50 .*50", tasks)
    papers, further = tasks.split("Further tasks")
    assert len(re.findall(r"-v\d .*envpool", papers)) == 12
    assert len(re.findall(r"-v\d .*envpool", further)) == 30
    assert re.search(r"PointMaze_UMaze-v3 .*4 .*2 .*2 .*300 .*envpool", further)
    critics = command("critics").stdout
    assert re.search(r"mrn-squared .*no .*140,656", critics)
    assert re.search(r"iqe .*union_j \[u_kj, max\(u_kj, v_kj\)\].*yes", critics)
    agents = command("agents").stdout
    assert re.search(r"td3 .*two critics.* any .*policy_delay", agents)
    assert re.search(r"gcsl .*imitates.* none .*noise, random_action_prob", agents)


def test_a_terminal_gets_a_progress_bar_whose_lines_fit_80_columns(tmp_path):
    code, text = in_a_terminal(MRN, "train", "FetchReach", *SMALL, cwd=tmp_path, columns=80)
    assert code == 0
    assert re.search(r"epoch 1/1.*success.*steps/s.*left", text)
    lines = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line) for line in re.split(r"[\r\n]+", text)]
    bars = [line for line in lines if "━" in line]
    assert bars
    assert all(len(line) <= 80 and line.count("━") >= 10 for line in bars)
    assert all("steps/s" in line and "left" in line for line in bars)
    assert max(len(line) for line in lines if line.startswith(("epoch", "FetchReach"))) <= 80


def test_figures_as_json(tmp_path, monkeypatch, capsys):
    tiny_run(tmp_path / "run", epochs=1)
    monkeypatch.setattr(
        "sys.argv", ["mrn", "eval", str(tmp_path / "run"), "--json", "--episodes=5"]
    )
    cli.main()
    figures = json.loads(capsys.readouterr().out)
    low, high = figures["interval_95"]
    assert 0 <= low <= figures["success"] <= high <= 1
    assert high - low > 0.3  # five episodes say little
    assert figures["episodes"] == 5
    assert figures["engine"] == "envpool"
    assert figures["weights"] == str(tmp_path / "run" / "latest.safetensors")


def test_an_evaluation_says_its_interval_its_engine_and_its_weights(tmp_path, monkeypatch, capsys):
    tiny_run(tmp_path / "a run", epochs=1)
    always = Evaluation(200, 1.0, 1.0, 3.0, "gymnasium")
    monkeypatch.setattr(Agent, "evaluate", lambda *_, **__: always)
    monkeypatch.setattr("sys.argv", ["mrn", "eval", str(tmp_path / "a run")])
    cli.main()
    out = capsys.readouterr().out
    assert "100.0%  [98.1, 100.0], Wilson's 95 % interval" in out
    assert "200 episodes on gymnasium" in out
    assert "latest.safetensors" in out


def test_the_settings_of_an_agent_are_its_help(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["mrn", "train", "--algo", "ddpg", "--help"])
    with pytest.raises(SystemExit):
        cli.main()
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "--tau FLOAT Fraction of the target networks kept" in text


def test_the_version(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["mrn", "--version"])
    cli.main()
    assert capsys.readouterr().out.split() == ["mrn", mrn.__version__]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--discount", "1.0"], "discount must be below 1, got 1.0"),
        (["--hidden-dim", "100000000"], "width must be at most 16384"),
        (["--batch-size", "99999999999"], "batch_size must be at most"),
        (["--threads", "100000"], "threads must be at most 1024"),
        (["--device", "cuda"], "PyTorch finds no GPU here.*Use cpu"),
        (["--stop-at", "95"], "stop_at must be at most 1"),
        (["--config", "no/such/config.json"], "cannot read no/such/config.json"),
        (["--env-kwargs", '{"a": 1}'], "env_kwargs only applies to custom environments"),
        (["--algo", "no_lab:X"], "there is no module 'no_lab'"),
        (
            ["--target-policy-noise", "0.1"],
            "target_policy_noise is a setting of td3, not of ddpg: choose such",
        ),
        (["--algo=gcsl", "--discount=0.9"], "discount is a setting of ddpg, td3, sac, wgcsl, not"),
        (["--algo=sac", "--no-discount-weight"], "discount_weight is a setting of wgcsl, not of"),
        (["--algo", "gcsl", "--critic", "bvn"], "learns without a critic: leave 'bvn' out"),
        (["--critic", "none"], "agent 'ddpg' needs a critic"),
        (["--episodes", "1000000000000000000"], "episodes must be at most 100000"),
        (["--buffer-size", "1" + "0" * 30], "capacity must be at most"),
        (["--stop-at", "0.9", "--eval-episodes", "0"], "stop_at needs evaluations"),
        (["--seed", "1" + "0" * 400], "seed must be at most 4.29497e.09, got 10000"),
    ],
)
def test_values_that_cannot_be(options, message, tmp_path, monkeypatch, capsys):
    if "cuda" in options and torch.cuda.is_available():
        options = ["--device", "cuda:99"]
        message = "unknown device"
    monkeypatch.chdir(tmp_path)
    task = [] if "--config" in options else ["FetchReach"]
    monkeypatch.setattr("sys.argv", ["mrn", "train", *task, *options])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert re.search(message, capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("option", "most"),
    [
        ("epochs", "1e.06"),
        ("checkpoint-every", "1e.06"),
        ("updates", "1e.06"),
        ("eval-episodes", "1e.06"),
        ("random-episodes", "1e.09"),
    ],
)
def test_numbers_beyond_all_time(option, most, monkeypatch, capsys):
    monkeypatch.setattr(cli.training, "_run", lambda *_: pytest.fail("it was accepted"))
    assert ended(monkeypatch, "train", "FetchReach", f"--{option}", "1" + "0" * 30) == 2
    name = option.replace("-", "_")
    assert re.search(f"^error: {name} must be at most {most}, got 1000", capsys.readouterr().err)
    assert ended(monkeypatch, "train", "FetchReach", f"--{option}", "1e30") == 2  # no whole number
    assert "1e30" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "FetchReech"], "unknown task 'FetchReech'. Did you mean 'FetchReach'?"),
        (["train", "MyReach-v0"], "name a custom environment package.module:Id-v0"),
        (["resume", "zoo:FetchReach"], "is there to act by: it has no checkpoint to go on from"),
        (["train", "FetchReach", "--critic", "mmrn"], "unknown critic 'mmrn'. Did you mean 'mrn'?"),
        (["train", "FetchReach", "--engine", "envpol"], "Did you mean 'envpool'?"),
        (["train", "FetchReach", "--device", "cpuu"], "Did you mean 'cpu'?"),
        (["train", "FetchReach", "--algo", "ddgp"], "Did you mean 'ddpg'?"),
        (["train", "FetchReach", "--batch-size", "0"], "batch_size must be at least 1"),
        (["train", "FetchReach", "--batch-size", "x"], "batch-size"),
        (["train", "FetchReach", "--no-such-option"], "no-such-option"),
        (["train", "CartPole-v1"], "is not a goal environment"),
        (["train", "tests.envs.custom_envs:Unbounded-v0"], "must be a bounded, one-dimensional Box"),
        (["resume", "no/such/run"], "is no run folder"),
        (["train", "FetchReach", "--run-dir", "/proc/no/run"], "cannot make the run folder"),
        (["eval", "no/such/run"], "no run folder or weights file"),
    ],
)
def test_mistakes_get_one_message_and_exit_code_2(arguments, message, tmp_path):
    result = command(*arguments, cwd=tmp_path)
    assert result.returncode == 2, result.stderr
    assert message in result.stderr + result.stdout
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.rglob("*.safetensors"))


LONG = "a" * 300
"""More than a file system takes for a name."""


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
def test_a_name_that_the_system_refuses(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert ended(monkeypatch, *arguments) == 2
    assert re.fullmatch(
        rf"error: cannot read or write \S*{LONG}\S*: File name too long\n", capsys.readouterr().err
    )


@pytest.mark.parametrize("words", [["eval"], ["resume"], ["train", "FetchReach", "--run-dir"]])
def test_a_folder_without_permission(words, tmp_path, monkeypatch, capsys):
    stat = os.stat

    def sealed(path, **options):  # root, who may run the tests, may do everything
        if "sealed" in str(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, **options)

    monkeypatch.setattr("os.stat", sealed)
    monkeypatch.chdir(tmp_path)
    assert ended(monkeypatch, *words, "sealed/run") == 2
    message = r"error: cannot read or write sealed/run\S*: Permission denied\n"
    assert re.fullmatch(message, capsys.readouterr().err)


def test_a_refusal_that_names_no_file_says_where(capsys):
    with pytest.raises(SystemExit) as end, report_errors():
        raise OSError(errno.EBADF, "Bad file descriptor")
    assert end.value.code == 1  # no mistake in what was asked for
    said = capsys.readouterr().err
    assert re.fullmatch(
        rf"error: OSError: .*Bad file descriptor \({re.escape(__file__)}, line \d+\)\n", said
    )


def ended(monkeypatch, *arguments: str) -> int:
    """The exit code of a command in this process."""
    monkeypatch.setattr("sys.argv", ["mrn", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return end.value.code


def test_a_reader_that_has_seen_enough_ends_a_command_quietly(tmp_path, monkeypatch):
    process = subprocess.Popen([MRN, "tasks"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.communicate(timeout=60)[1] == b""
    assert process.returncode == 1
    # Another pipe that breaks is not that: it is not to end a run without a word.
    with open(tmp_path / "out", "w") as out:
        monkeypatch.setattr("sys.stdout", out)
        with pytest.raises(BrokenPipeError), report_errors():
            raise BrokenPipeError
