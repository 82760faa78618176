"""Tests of custom critics, algorithms and suites, named `package.module:name`."""

import json
import sys

import numpy as np
import pytest

import mrn
from mrn.analysis.runs import find_runs, group
from mrn.analysis.summary import summarize
from mrn.runs.provenance import read_config
from mrn.sweeps.child import train_job
from mrn.sweeps.suites import find_suite
from tests.cli.helpers import run_command
from tests.reliability.helpers import same_run
from tests.sweeps.helpers import write_run
from tests.training.helpers import TINY, metrics, same_weights

MODULE = '''
"""A user's package."""
from dataclasses import dataclass
from mrn.algorithms.ddpg import DDPG
from mrn.critics import Architecture
from mrn.critics.monolithic import Monolithic

small = Architecture(lambda dims, width, size: Monolithic(dims, size), 64, "MLP(s, a, g)")
fixed = Architecture(lambda dims, width, size: Monolithic(dims, 8), 64, "MLP(s, a, g)")

class TwoNames(Monolithic):
    """A critic that registers one network under two names."""
    def __init__(self, dims, size):
        super().__init__(dims, size)
        (self.alias,) = self.children()

twice = Architecture(lambda dims, width, size: TwoNames(dims, size), 64, "MLP(s, a, g)")

@dataclass(frozen=True)
class EagerSettings(DDPG.Settings):
    """Settings with a tuple."""
    layers: tuple[int, ...] = (3, 4)

class Eager(DDPG):
    """DDPG with two gradient steps per batch."""
    Settings = EagerSettings
    def update(self, batch, update_step, generator):
        super().update(batch, update_step, generator)
        return super().update(batch, update_step, generator)

number = 3
'''


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Make a folder with a user's package, and change into it."""
    (tmp_path / "my_lab").mkdir()
    (tmp_path / "my_lab" / "__init__.py").write_text("")
    (tmp_path / "my_lab" / "ideas.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    yield tmp_path
    for name in ("my_lab", "my_lab.ideas"):
        sys.modules.pop(name, None)


SIZES = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]


def test_train_resume_and_reuse_custom_critic_and_algorithm(project, monkeypatch, capsys):
    own = ["--critic=my_lab.ideas:small", "--algo=my_lab.ideas:Eager"]
    run_command(monkeypatch, "train", "FetchReach", *own, *SIZES, "--epochs=1")
    folder = project / "runs/FetchReach/my_lab.ideas_Eager-my_lab.ideas_small+fast/seed-100"
    agent = mrn.load(folder)
    assert type(agent.algorithm).__name__ == "Eager"
    run_command(monkeypatch, "eval", str(folder), "--episodes=2")
    run_command(monkeypatch, "resume", str(folder), "--epochs=2")
    settings = {"critic": "my_lab.ideas:small", "algo": "my_lab.ideas:Eager"}
    mrn.train("FetchReach", run_dir="whole", progress=False, **TINY | settings)
    assert same_run(folder, project / "whole")
    run_command(monkeypatch, "train", "--config=whole/config.json", "--run-dir=again")
    assert same_run(project / "again", project / "whole")
    changed = ["--config=whole/config.json", "--algo=ddpg", "--epochs=1", "--run-dir=other"]
    run_command(monkeypatch, "train", "FetchReach", *changed)
    assert mrn.load("other").config.algo == "ddpg"
    plain = mrn.train(
        "FetchReach", run_dir="plain", progress=False, **TINY | {"critic": "my_lab.ideas:small"}
    )
    assert not same_weights(plain, mrn.load("whole"))
    assert len(metrics(project / "plain")) == 2


def test_runs_are_read_without_importing_custom_modules(
    project, monkeypatch, tmp_path_factory, capsys
):
    own = {"algo": "my_lab.ideas:Eager", "exploration_noise": 0.1, "layers": (np.int64(5), 6)}
    for seed in (1, 2):
        write_run(project / "runs", [0.5, 0.7], seed, **own)
    fast = {"recipe": "fast", "cycles": 50, "num_envs": 20, "warmup_episodes": 0, "redraws": 0}
    write_run(project / "recipes", [0.5, 0.7], 1, **own)
    write_run(project / "recipes", [0.5, 0.7], 1, **own | fast)
    sys.modules.pop("my_lab.ideas")
    (project / "my_lab" / "ideas.py").write_text("raise SystemExit('it was imported')")
    run_command(monkeypatch, "figures", "runs", "-o", "out")
    run_command(monkeypatch, "report", "runs", "-o", "page")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    for root in (project / "runs", project / "out"):
        first, second = find_runs(root)
        assert (first.problem, first.method) == ("", "my_lab.ideas_Eager-mrn")
        assert first.config.algo_config["exploration_noise"] == 0.1
        arguments = first.config.arguments()
        assert "--exploration-noise=0.1" in arguments
        assert arguments[arguments.index("--layers") :][:3] == ["--layers", "5", "6"]
        assert [second.seed, *second.success] == [2, 0.5, 0.7]
    run = project / "runs" / first.config.folder
    with pytest.raises(mrn.UserError, match="it was imported"):  # resuming needs the module
        read_config(run, trust_code=True)
    warnings = summarize(group(find_runs(project / "recipes"))[""]).warnings
    assert [
        text for text in warnings if "action_penalty" in text or "target_update_interval" in text
    ] == []
    config_file = project / "runs" / first.config.folder / "config.json"
    original = config_file.read_text()
    for wrong, message in (
        ('"algo_config": 3, "more": {', "algo_config must be a table"),
        ('"algo_config": {"seed": 7, ', "a setting 'seed', which every run already has"),
        ('"algo_config": {"x": NaN, ', "algo_config must be representable as JSON"),
    ):
        config_file.write_text(original.replace('"algo_config": {', wrong))
        assert message in find_runs(project / "runs")[0].problem


def test_shared_network_is_saved_and_resumed(project):
    settings = {"critic": "my_lab.ideas:twice"}
    mrn.train("FetchReach", run_dir="whole", progress=False, **TINY | settings)
    for epochs in (1, 2):
        settings |= {"epochs": epochs}
        mrn.train("FetchReach", run_dir="run", progress=False, resume=True, **TINY | settings)
    assert same_run(project / "run", project / "whole")
    critic = mrn.load("run").algorithm.critic
    assert next(critic.alias.parameters()) is next(critic.parameters())


def test_critic_that_ignores_size_is_rejected(project):
    with pytest.raises(mrn.UserError, match="must grow with the `size`"):
        mrn.make_critic("my_lab.ideas:fixed", 25, 4, 3)


def test_suite_with_a_custom_critic(project):
    file = project / "mine.toml"
    file.write_text(
        'tasks = ["FetchReach"]\ncritics = ["my_lab.ideas:small", "mrn"]\nseeds = [1]\n'
    )
    names = [config.folder.parts[1] for config in find_suite(str(file)).configs()]
    assert names == ["ddpg-my_lab.ideas_small", "ddpg-mrn"]


def test_jobs_in_other_folders_import_modules_of_the_sweep(project, monkeypatch, tmp_path_factory):
    config = mrn.Config.of("FetchReach", **TINY | {"algo": "my_lab.ideas:Eager", "epochs": 1})
    settings = json.loads(json.dumps(config.to_dict()))
    for name in ("my_lab", "my_lab.ideas"):
        sys.modules.pop(name)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    sys.path.remove(str(project))
    with pytest.raises(mrn.UserError, match="there is no module 'my_lab.ideas'"):
        train_job(settings, project / "run")
    train_job(settings, project / "run", home=str(project))
    assert len(metrics(project / "run")) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "my_lab.ideas:smal",
            "'my_lab.ideas:smal': module 'my_lab.ideas' .*ideas.py\\) has no 'smal'",
        ),
        (
            "my_lab.ideas:number",
            "critic 'my_lab.ideas:number' must be an mrn.critics.Architecture, got 3",
        ),
        ("my_lab.thoughts:x", "there is no module 'my_lab.thoughts'"),
        ("mnr", "Did you mean 'mrn'.*or package.module:name for a custom critic"),
    ],
)
def test_invalid_plugin_names(project, name, message):
    with pytest.raises(mrn.UserError, match=message):
        mrn.make_critic(name, 3, 2, 1)
    assert not (project / "runs").exists()
