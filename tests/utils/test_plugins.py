"""Critics, agents and environments of a user's own, named `package.module:name` everywhere."""

import json
import sys

import numpy as np
import pytest

import mrn
from mrn import cli
from mrn.analysis.runs import find_runs, group
from mrn.analysis.summary import summarize
from mrn.runs.provenance import read_config
from mrn.sweeps.child import train_job
from mrn.sweeps.suites import find_suite
from tests.reliability.helpers import same_run
from tests.sweeps.helpers import write_run
from tests.training.helpers import TINY, metrics, same_weights

MODULE = '''
"""A package of a user's own."""
from dataclasses import dataclass
from mrn.algorithms.ddpg import DDPG
from mrn.critics import Architecture
from mrn.critics.monolithic import Monolithic

small = Architecture(lambda dims, width, size: Monolithic(dims, size), 64, "MLP(s, a, g)")
fixed = Architecture(lambda dims, width, size: Monolithic(dims, 8), 64, "MLP(s, a, g)")

class TwoNames(Monolithic):
    """One network under two names."""
    def __init__(self, dims, size):
        super().__init__(dims, size)
        (self.alias,) = self.children()

twice = Architecture(lambda dims, width, size: TwoNames(dims, size), 64, "MLP(s, a, g)")

@dataclass(frozen=True)
class EagerSettings(DDPG.Settings):
    """With a setting of many values."""
    layers: tuple[int, ...] = (3, 4)

class Eager(DDPG):
    """DDPG that learns twice from a batch."""
    Settings = EagerSettings
    def update(self, batch, number, generator):
        super().update(batch, number, generator)
        return super().update(batch, number, generator)

number = 3
'''


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a package in it, in which the user is."""
    (tmp_path / "my_lab").mkdir()
    (tmp_path / "my_lab" / "__init__.py").write_text("")
    (tmp_path / "my_lab" / "ideas.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    yield tmp_path
    for name in ("my_lab", "my_lab.ideas"):
        sys.modules.pop(name, None)


def command(monkeypatch, *arguments: str) -> None:
    monkeypatch.setattr("sys.argv", ["mrn", *arguments])
    cli.main()


SIZES = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]


def test_a_run_of_ones_own_critic_and_agent(here, monkeypatch, capsys):
    own = ["--critic=my_lab.ideas:small", "--algo=my_lab.ideas:Eager"]
    command(monkeypatch, "train", "FetchReach", *own, *SIZES, "--epochs=1")
    folder = here / "runs/FetchReach/my_lab.ideas_Eager-my_lab.ideas_small+fast/seed-100"
    agent = mrn.load(folder)
    assert type(agent.algorithm).__name__ == "Eager"
    command(monkeypatch, "eval", str(folder), "--episodes=2")
    command(monkeypatch, "resume", str(folder), "--epochs=2")
    settings = {"critic": "my_lab.ideas:small", "algo": "my_lab.ideas:Eager"}
    mrn.train("FetchReach", run_dir="whole", progress=False, **TINY | settings)
    assert same_run(folder, here / "whole")
    command(monkeypatch, "train", "--config=whole/config.json", "--run-dir=again")
    assert same_run(here / "again", here / "whole")
    changed = ["--config=whole/config.json", "--algo=ddpg", "--epochs=1", "--run-dir=other"]
    command(monkeypatch, "train", "FetchReach", *changed)
    assert mrn.load("other").config.algo == "ddpg"
    plain = mrn.train(
        "FetchReach", run_dir="plain", progress=False, **TINY | {"critic": "my_lab.ideas:small"}
    )
    assert not same_weights(plain, mrn.load("whole"))
    assert len(metrics(here / "plain")) == 2


def test_runs_are_read_without_the_module_they_name(here, monkeypatch, tmp_path_factory, capsys):
    own = {"algo": "my_lab.ideas:Eager", "exploration_noise": 0.1, "layers": (np.int64(5), 6)}
    for seed in (1, 2):
        write_run(here / "runs", [0.5, 0.7], seed, **own)
    fast = {"recipe": "fast", "cycles": 50, "num_envs": 20, "warmup_episodes": 0, "redraws": 0}
    write_run(here / "recipes", [0.5, 0.7], 1, **own)
    write_run(here / "recipes", [0.5, 0.7], 1, **own | fast)
    sys.modules.pop("my_lab.ideas")
    (here / "my_lab" / "ideas.py").write_text("raise SystemExit('it was imported')")
    command(monkeypatch, "figures", "runs", "-o", "out")
    command(monkeypatch, "report", "runs", "-o", "page")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    for root in (here / "runs", here / "out"):
        first, second = find_runs(root)
        assert (first.problem, first.method) == ("", "my_lab.ideas_Eager-mrn")
        assert first.config.algo_config["noise"] == 0.1
        told = first.config.arguments()
        assert "--exploration_noise=0.1" in told
        assert told[told.index("--layers") :][:3] == ["--layers", "5", "6"]
        assert [second.seed, *second.success] == [2, 0.5, 0.7]
    with pytest.raises(SystemExit, match="it was imported"):  # to go on with it
        read_config(here / "runs" / first.config.folder)
    told = summarize(group(find_runs(here / "recipes"))[""]).warnings
    assert [
        text for text in told if "action_penalty" in text or "target_update_interval" in text
    ] == []
    about = here / "runs" / first.config.folder / "config.json"
    good = about.read_text()
    for wrong, message in (
        ('"algo_config": 3, "more": {', "learning must be a table"),
        ('"algo_config": {"seed": 7, ', "a setting 'seed', which runs have already"),
        ('"algo_config": {"x": NaN, ', "learning must be what JSON can hold"),
    ):
        about.write_text(good.replace('"algo_config": {', wrong))
        assert message in find_runs(here / "runs")[0].problem


def test_a_network_with_two_names_is_saved_and_goes_on(here):
    settings = {"critic": "my_lab.ideas:twice"}
    mrn.train("FetchReach", run_dir="whole", progress=False, **TINY | settings)
    for epochs in (1, 2):
        settings |= {"epochs": epochs}
        mrn.train("FetchReach", run_dir="run", progress=False, resume=True, **TINY | settings)
    assert same_run(here / "run", here / "whole")
    critic = mrn.load("run").algorithm.critic
    assert next(critic.alias.parameters()) is next(critic.parameters())


def test_a_critic_whose_size_cannot_be_chosen(here):
    with pytest.raises(mrn.UserError, match="must grow with the `size`"):
        mrn.make_critic("my_lab.ideas:fixed", 25, 4, 3)


def test_a_suite_of_ones_own(here):
    file = here / "mine.toml"
    file.write_text(
        'tasks = ["FetchReach"]\ncritics = ["my_lab.ideas:small", "mrn"]\nseeds = [1]\n'
    )
    names = [config.folder.parts[1] for config in find_suite(str(file)).configs()]
    assert names == ["ddpg-my_lab.ideas_small", "ddpg-mrn"]


def test_a_process_elsewhere_finds_the_sweeps_modules(here, monkeypatch, tmp_path_factory):
    config = mrn.Config.of("FetchReach", **TINY | {"algo": "my_lab.ideas:Eager", "epochs": 1})
    settings = json.loads(json.dumps(config.to_dict()))
    for name in ("my_lab", "my_lab.ideas"):
        sys.modules.pop(name)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    sys.path.remove(str(here))
    with pytest.raises(mrn.UserError, match="there is no module 'my_lab.ideas'"):
        train_job(settings, here / "run")
    train_job(settings, here / "run", home=str(here))
    assert len(metrics(here / "run")) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_lab.ideas:smal", "module 'my_lab.ideas' has no 'smal', which is to be the critic"),
        ("my_lab.ideas:number", "is to be the critic, an mrn.critics.Architecture, but is 3"),
        ("my_lab.thoughts:x", "there is no module 'my_lab.thoughts'"),
        ("mnr", "Did you mean 'mrn'.*or package.module:name for one of your own"),
    ],
)
def test_names_that_do_not_fit(here, name, message):
    with pytest.raises(mrn.UserError, match=message):
        mrn.make_critic(name, 3, 2, 1)
    assert not (here / "runs").exists()
