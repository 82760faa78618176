"""Files of version 0.1 still load and resume; old names in Python and on the CLI are errors."""

import csv
import re
import shutil
from pathlib import Path

import pytest

import mrn
from mrn.config import flatten
from mrn.runs.provenance import read_config
from mrn.sweeps.suites import find_suite
from mrn.utils.renames import SETTINGS, upgrade_config
from tests.cli.helpers import exit_code

FIXTURES = Path(__file__).parents[1] / "fixtures" / "v0.1"
TIMINGS = {"steps_per_second", "rollout_seconds", "update_seconds", "evaluation_seconds"}


@pytest.fixture
def old_run(tmp_path):
    """Copy a SAC run of version 0.1 that has finished two of three epochs."""
    return Path(shutil.copytree(FIXTURES / "run", tmp_path / "run"))


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_old_settings_are_translated():
    config = read_config(FIXTURES / "run")
    assert (config.algo, config.schedule.num_envs, config.schedule.gradient_steps) == ("sac", 2, 3)
    assert (config.schedule.warmup_episodes, config.replay.buffer_size) == (2, 200)
    assert config.replay.her_ratio == 0.7
    assert (config.algo_config.tau, config.algo_config.hidden_dim) == (0.005, 8)
    assert config.algo_config.ent_coef == 0.2


def test_old_policy_file_loads_and_evaluates():
    agent = mrn.load(FIXTURES / "run")
    assert agent.evaluate(episodes=2, seed=0).episodes == 2
    assert {name.partition(".")[0] for name in agent.state_dict()} == {"algorithm", "normalizer"}


def test_old_run_resumes_to_the_metrics_of_version_0_1(old_run):
    settings = flatten(read_config(old_run).to_dict())
    settings |= {"epochs": 3, "run_dir": old_run, "resume": True}
    with pytest.warns(UserWarning, match="commit was"):
        agent = mrn.train(settings.pop("task"), progress=False, **settings)
    assert agent.config.epochs == 3
    found, expected = rows(old_run / "metrics.csv"), rows(FIXTURES / "metrics-after-epoch-3.csv")
    assert list(found[0]) == [{"temperature": "ent_coef"}.get(name, name) for name in expected[0]]
    for new, old in zip(found, expected, strict=True):
        old["ent_coef"] = old.pop("temperature")
        for name in old.keys() - TIMINGS:
            want = float(old[name]) if old[name] else None
            got = float(new[name]) if new[name] else None
            assert got == (want if want is None else pytest.approx(want, rel=1e-4)), name


def test_old_suite_has_the_same_runs():
    configs = find_suite(str(FIXTURES / "suite.toml")).configs()
    assert [config.algo for config in configs] == ["ddpg", "ddpg", "td3", "td3"]
    assert {config.schedule.num_envs for config in configs} == {5}
    assert {config.schedule.gradient_steps for config in configs} == {10}
    assert {config.replay.buffer_size for config in configs} == {5000}
    assert [config.algo_config.tau for config in configs] == [0.1, 0.005] * 2
    assert configs[2].algo_config.target_policy_noise == 0.1


@pytest.mark.parametrize(("old", "new"), SETTINGS.items())
def test_old_setting_in_python_names_the_new_one(old, new):
    with pytest.raises(mrn.UserError, match=f"{old} was renamed to {new}"):
        mrn.Config.of("FetchReach", **{old: 1})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--agent", "sac"], "--agent was renamed to --algo"),
        (["--target-keep=0.9"], r"--target-keep was renamed to --tau \(tau = 1 - target_keep\)"),
        (["--no-workers"], "--workers was renamed to --async-envs"),
    ],
)
def test_old_flag_names_the_new_one(words, message, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert exit_code(monkeypatch, "train", "FetchReach", *words) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


def test_current_settings_are_unchanged():
    new = mrn.Config.of("FetchReach", algo="sac").to_dict()
    assert upgrade_config(new) == new
    custom = {"task": "FetchReach", "algo": "lab:X", "algo_config": {"noise": 1, "width": 2}}
    assert upgrade_config(custom) == custom
