"""Files written by version 0.1 load, resume and mean the same; old names elsewhere are errors."""

import csv
import re
import shutil
from pathlib import Path

import pytest

import mrn
from mrn import cli
from mrn.config import flatten
from mrn.runs.provenance import read_config
from mrn.sweeps.suites import find_suite
from mrn.utils.renames import SETTINGS, upgrade_config

OLD = Path(__file__).parents[1] / "fixtures" / "v0.1"
SECONDS = {"steps_per_second", "rollout_seconds", "update_seconds", "evaluation_seconds"}


@pytest.fixture
def old_run(tmp_path):
    """A copy of a run of SAC, two of three epochs done, that version 0.1 wrote."""
    return Path(shutil.copytree(OLD / "run", tmp_path / "run"))


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_settings_of_an_old_run_get_their_new_names():
    config = read_config(OLD / "run")
    assert (config.algo, config.schedule.num_envs, config.schedule.gradient_steps) == ("sac", 2, 3)
    assert (config.schedule.warmup_episodes, config.replay.buffer_size) == (2, 200)
    assert config.replay.her_ratio == 0.7
    assert (config.algo_config.tau, config.algo_config.hidden_dim) == (0.005, 8)
    assert config.algo_config.ent_coef == 0.2


def test_an_old_policy_file_loads_and_acts():
    agent = mrn.load(OLD / "run")
    assert agent.evaluate(episodes=2, seed=0).episodes == 2
    assert {name.partition(".")[0] for name in agent.state_dict()} == {"algorithm", "normalizer"}


def test_an_old_run_resumes_to_the_numbers_that_version_0_1_got(old_run):
    settings = read_config(old_run)
    given = flatten(settings.to_dict()) | {"epochs": 3, "run_dir": old_run, "resume": True}
    with pytest.warns(UserWarning, match="commit was"):
        again = mrn.train(given.pop("task"), progress=False, **given)
    assert again.config.epochs == 3
    found, expected = rows(old_run / "metrics.csv"), rows(OLD / "metrics-after-epoch-3.csv")
    assert list(found[0]) == [{"temperature": "ent_coef"}.get(name, name) for name in expected[0]]
    for ours, theirs in zip(found, expected, strict=True):
        theirs["ent_coef"] = theirs.pop("temperature")
        for name in theirs.keys() - SECONDS:
            want = float(theirs[name]) if theirs[name] else None
            got = float(ours[name]) if ours[name] else None
            assert got == (want if want is None else pytest.approx(want, rel=1e-4)), name


def test_an_old_suite_has_the_same_runs():
    configs = find_suite(str(OLD / "suite.toml")).configs()
    assert [config.algo for config in configs] == ["ddpg", "ddpg", "td3", "td3"]
    assert {config.schedule.num_envs for config in configs} == {5}
    assert {config.schedule.gradient_steps for config in configs} == {10}
    assert {config.replay.buffer_size for config in configs} == {5000}
    assert [config.algo_config.tau for config in configs] == [0.1, 0.005] * 2
    assert configs[2].algo_config.target_policy_noise == 0.1


@pytest.mark.parametrize(("old", "new"), SETTINGS.items())
def test_an_old_name_in_python_is_an_error_with_the_new_one(old, new):
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
def test_an_old_flag_is_an_error_with_the_new_one(words, message, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["mrn", "train", "FetchReach", *words])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == 2
    assert re.search(message, capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


def test_settings_of_this_version_are_left_alone():
    new = mrn.Config.of("FetchReach", algo="sac").to_dict()
    assert upgrade_config(new) == new
    custom = {"task": "FetchReach", "algo": "lab:X", "algo_config": {"noise": 1, "width": 2}}
    assert upgrade_config(custom) == custom
