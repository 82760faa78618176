"""Files name custom modules; nothing imports them unless the user's command allows it."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

import mrn
from mrn.runs.policy_file import read_policy, write_policy
from mrn.sweeps.jobs import plan_jobs
from mrn.sweeps.suites import Suite
from mrn.utils.files import checksum
from tests.cli.helpers import exit_code, run_command
from tests.commands import mrn as mrn_command
from tests.training.helpers import TINY, tiny_run

EVIL = 'import pathlib\npathlib.Path("canary").touch()\n'
NAMES = {"critic": "evil:critic", "algo": "evil:Algorithm", "task": "evil:Env-v0"}
COMMANDS = {
    "eval": ("eval", "run", "--episodes=1"),
    "export": ("export", "run", "policy.onnx"),
    "video": ("video", "run", "video.gif", "--episodes=1"),
    "inspect": ("inspect", "run", "--episodes=1", "-o", "out"),
    "resume": ("resume", "run", "--epochs=3"),
    "train": ("train", "--config", "run/config.json", "--run-dir", "new"),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    tiny_run(folder, epochs=1)
    return folder


@pytest.fixture
def run(trained, tmp_path, monkeypatch) -> Path:
    """Copy a run next to a module that leaves a file when it is imported."""
    shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "evil.py").write_text(EVIL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    yield tmp_path / "run"
    sys.modules.pop("evil", None)


def imported(run: Path) -> bool:
    return (run.parent / "canary").exists()


def forge(run: Path, **names: object) -> None:
    """Change settings in config.json and in the weights."""
    file, weights = run / "config.json", run / "latest.safetensors"
    info = json.loads(file.read_text(encoding="utf-8"))
    about, tensors = read_policy(weights)
    for each in (info, about):
        each["config"] |= names
        each["task"]["env_id"] = names.get("task", each["task"]["env_id"])
    file.write_text(json.dumps(info), encoding="utf-8")
    write_policy(weights, about, tensors)


@pytest.mark.parametrize("setting", NAMES)
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_do_not_import_what_a_run_names(run, monkeypatch, capsys, command, setting):
    forge(run, **{setting: NAMES[setting]})
    assert exit_code(monkeypatch, *COMMANDS[command]) == 2
    message = capsys.readouterr().err
    assert NAMES[setting] in message
    assert "runs code of module 'evil'. If you trust it, pass --trust-code" in message
    assert not imported(run)


@pytest.mark.parametrize("setting", NAMES)
@pytest.mark.parametrize("command", ["eval", "resume", "train"])
def test_consent_imports_the_module(run, monkeypatch, capsys, command, setting):
    forge(run, **{setting: NAMES[setting]})
    assert exit_code(monkeypatch, *COMMANDS[command], "--trust-code") == 2
    assert "evil.py) " in capsys.readouterr().err  # it has no such object
    assert imported(run)


def test_weights_may_name_another_environment_than_their_settings(run):
    about, tensors = read_policy(run / "latest.safetensors")
    about["task"]["env_id"] = "evil:Env-v0"
    write_policy(run / "forged.safetensors", about, tensors)
    with pytest.raises(mrn.UserError, match="custom environment 'evil:Env-v0'; loading it runs"):
        mrn.load(run / "forged.safetensors")
    shutil.copy(run / "forged.safetensors", run / "latest.safetensors")
    with pytest.raises(mrn.UserError, match="env_id was 'FetchReach-v4', now 'evil:Env-v0'"):
        mrn.load(run, trust_code=True)
    assert not imported(run)


def test_env_kwargs_of_a_file_need_consent(run):
    # Constructors may import what their arguments name, such as an environment to wrap.
    for prefix in ("", "gymnasium:"):  # a module that is already imported
        task, kwargs = f"{prefix}GymV26Environment-v0", {"env_id": "evil:Env-v0"}
        forge(run, task=task, env_kwargs=kwargs)
        with pytest.raises(mrn.UserError, match="runs its constructor with them. If you trust it"):
            mrn.load(run)


def test_checkpoint_cannot_name_another_module(run, monkeypatch, capsys):
    for folder in (run / "checkpoints").glob("0*"):
        about = json.loads((folder / "checkpoint.json").read_text(encoding="utf-8"))
        about["config"] |= {"critic": "evil:critic", "algo": "evil:Algorithm"}
        text = json.dumps(about).encode()
        (folder / "checkpoint.json").write_bytes(text)
        (folder / "complete").write_bytes(checksum(text).encode())
    assert exit_code(monkeypatch, "resume", "run", "--epochs=3", "--trust-code") == 2
    assert "has different settings: critic was 'evil:critic', now 'mrn'" in capsys.readouterr().err
    assert not imported(run)


def test_sweep_and_training_do_not_import_what_their_folder_names(run, tmp_path):
    suite = Suite(("FetchReach",), seeds=(1,), folder="s", settings={"epochs": 1})
    folder = tmp_path / "runs" / "s" / suite.configs()[0].folder
    folder.parent.mkdir(parents=True)
    forge(run, critic="evil:critic")
    shutil.copytree(run, folder)
    with pytest.raises(mrn.UserError, match="has different settings: critic was 'evil:critic'"):
        plan_jobs(suite, tmp_path / "runs", threads=1)
    with pytest.raises(mrn.UserError, match="has different settings: critic was 'evil:critic'"):
        tiny_run(run, resume=True)
    assert not imported(run)


def test_modules_named_by_the_user_need_no_consent(run, monkeypatch, capsys):
    module = "from mrn.critics import CRITICS\ncritic = CRITICS['mrn']\n"
    (run.parent / "evil.py").write_text(module, encoding="utf-8")
    sizes = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
    command = ["train", "FetchReach", "--critic=evil:critic", *sizes, "--epochs=1"]
    run_command(monkeypatch, *command, "--run-dir=custom")
    assert "mrn eval custom --trust-code" in capsys.readouterr().out
    run_command(monkeypatch, *command[:-1], "--epochs=2", "--run-dir=custom", "--resume")
    mrn.load("custom")  # this process has imported the module
    sys.modules.pop("evil")
    with pytest.raises(mrn.UserError, match="custom critic 'evil:critic'"):
        mrn.load("custom")
    assert "evil" not in sys.modules
    assert mrn.load("custom", trust_code=True).config.critic == "evil:critic"
    with pytest.raises(mrn.UserError, match=r"resume it with: mrn resume custom --trust-code"):
        tiny_run(Path("custom"))


EXITS = {
    "import": "import sys\nsys.exit(0)\n",
    "critic": """
import sys
from mrn.critics import Architecture
critic = Architecture(lambda *_: sys.exit(0), 64, "Q")
""",
}


@pytest.mark.parametrize("place", EXITS)
def test_code_that_exits_with_0_does_not_make_a_command_succeed(run, monkeypatch, capsys, place):
    (run.parent / "evil.py").write_text(EXITS[place], encoding="utf-8")
    forge(run, critic="evil:critic")
    assert exit_code(monkeypatch, "eval", "run", "--trust-code") in (2, 3)
    assert re.search(r"SystemExit: 0 \(.*evil.py, line \d+\)", capsys.readouterr().err)


EXITING_ENV = """
import sys
import gymnasium as gym
from tests.envs.custom_envs import Walk

class Exits(Walk):
    def step(self, action):
        sys.exit(0)

gym.register("Exits-v0", Exits, max_episode_steps=8)
"""


@pytest.mark.parametrize("options", [(), ("--async-envs",)])
def test_environment_that_exits_with_0_does_not_make_training_succeed(tmp_path, options):
    (tmp_path / "evil.py").write_text(EXITING_ENV, encoding="utf-8")
    ended = mrn_command("train", "evil:Exits-v0", *options, "--num-envs=2", cwd=tmp_path)
    assert ended.returncode == 3, ended.stderr
    assert "SystemExit: 0" in ended.stderr or "died during a step" in ended.stderr
