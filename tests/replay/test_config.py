"""Settings of goal mixtures: spellings, errors, files and the command line."""

import json
import re

import pytest

import mrn
from mrn import cli
from mrn.config import Config
from mrn.replay import ReplayConfig
from mrn.sweeps.suites import Suite, find_suite

MIX = "future=0.4,desired=0.4"


@pytest.mark.parametrize(
    "mix",
    [MIX, " future = .4, desired=0.40 ", {"future": 0.4, "desired": 0.4}],
)
def test_all_spellings_give_the_same_settings(mix):
    config = ReplayConfig(goal_mix=mix)
    assert config == ReplayConfig(goal_mix=MIX)
    assert config.goal_mix == MIX
    assert config.goal_weights == {"future": 0.4, "desired": 0.4}
    assert hash(config) == hash(ReplayConfig(goal_mix=MIX))


def test_two_plain_settings_are_the_short_form():
    assert ReplayConfig().goal_weights == {"future": 0.8}
    plain = ReplayConfig(goal_selection_strategy="final", her_ratio=0.3)
    assert plain.goal_weights == ReplayConfig(goal_mix="final=0.3").goal_weights


@pytest.mark.parametrize(
    ("mix", "message"),
    [
        ("future=-0.1", "weight of 'future' must be a number in [0, 1], got -0.1"),
        ("future=1.5", "weight of 'future' must be a number in [0, 1], got 1.5"),
        ("future=nan", "weight of 'future' must be a number in [0, 1], got nan"),
        ("future=inf", "must be a number in [0, 1], got inf"),
        ("future=much", "must be a number in [0, 1], got much"),
        ("future", "weight of 'future' must be a number in [0, 1], got "),
        ({"future": None}, "must be a number in [0, 1], got None"),
        ({"future": True}, "must be a number in [0, 1], got True"),
        ({"future": [0.4]}, "must be a number in [0, 1], got [0.4]"),
        ("future=0.8,desired=0.4", "the weights of goal_mix must sum to at most 1, got 1.2"),
        ("futur=0.4", "unknown strategy in goal_mix 'futur'. Did you mean 'future'?"),
        ("future=0.4,past=0.1", "Available: future, final, episode, geometric, random, desired"),
        ("future=0.4,future=0.1", "goal_mix names the strategy 'future' twice"),
        ("", "goal_mix must name at least one strategy, for example future=0.4,desired=0.4"),
        ({}, "goal_mix must name at least one strategy"),
        (0.8, "goal_mix must be text or a table of weights"),
        (["future"], "goal_mix must be text or a table of weights"),
    ],
)
def test_bad_mixtures_get_a_clear_error(mix, message):
    with pytest.raises(mrn.UserError, match=re.escape(message)):
        Config.of("FetchReach", goal_mix=mix)


def test_weights_may_sum_to_one_up_to_rounding():
    weights = {"future": 0.7, "final": 0.1, "episode": 0.1, "random": 0.1}
    assert sum(weights.values()) != 1
    assert ReplayConfig(goal_mix=weights).goal_weights == weights


@pytest.mark.parametrize("other", [{"her_ratio": 0.5}, {"goal_selection_strategy": "final"}])
def test_mixture_and_short_form_together_raise(other):
    with pytest.raises(mrn.UserError, match="replaces goal_selection_strategy and her_ratio"):
        Config.of("FetchReach", goal_mix=MIX, **other)


def test_mixture_survives_files_and_the_command_line(tmp_path):
    config = Config.of("FetchReach", recipe="fast", goal_mix={"future": 0.4, "desired": 0.4})
    assert Config.from_json(json.loads(json.dumps(config.to_dict())), "x") == config
    assert config.arguments() == ["FetchReach", f"--goal-mix={MIX}"]
    without = config.to_dict()
    del without["replay"]["goal_mix"]  # written before the setting existed
    assert Config.from_json(without, "x").replay.goal_weights == {"future": 0.8}
    file = tmp_path / "mixed.toml"
    file.write_text(
        'tasks = ["FetchReach"]\nseeds = [1]\n'
        "[settings]\nepochs = 1\ngoal_mix = {future = 0.4, desired = 0.4}\n"
    )
    (found,) = find_suite(str(file)).configs()
    assert found.replay == ReplayConfig(goal_mix=MIX)


def test_suites_compare_mixtures():
    suite = Suite(("FetchReach",), seeds=(1,), grid={"goal_mix": ["future=0.8", MIX]})
    names = [config.method for config in suite.configs()]
    assert names == ["ddpg-mrn+goal_mix=future=0.8", "ddpg-mrn+goal_mix=future=0.4_desired=0.4"]


def test_command_line_trains_with_a_mixture(tmp_path, monkeypatch, capsys):
    words = ["FetchReach", "--epochs=1", "--cycles=1", "--num-envs=2", "--gradient-steps=1"]
    words += ["--batch-size=8", "--hidden-dim=8", "--eval-episodes=1", "--threads=1"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["mrn", "train", *words, "--goal-mix", MIX, "--run-dir=run"])
    cli.main()
    assert mrn.load("run").config.replay.goal_mix == MIX
    monkeypatch.setattr("sys.argv", ["mrn", "train", "FetchReach", "--goal-mix", "past=1"])
    with pytest.raises(SystemExit):
        cli.main()
    assert "unknown strategy in goal_mix 'past'" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
