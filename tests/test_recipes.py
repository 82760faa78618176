"""Recipes: presets that single settings override, recorded in every run."""

import dataclasses
import json

import pytest

import mrn
from mrn.algorithms import ALGORITHMS
from mrn.config import flatten
from mrn.envs import TASKS
from mrn.recipes import FAMILIES, OVERRIDES, RECIPES
from mrn.schedule import Schedule
from tests.algorithms.test_interface import Cloner
from tests.analysis.test_summary import summary_of
from tests.commands import mrn as command
from tests.sweeps.helpers import write_run
from tests.training.helpers import TINY, tiny_run

SMALL = [f"--{name.replace('_', '-')}={value}" for name, value in (TINY | {"epochs": 1}).items()]


def settings(config: mrn.Config) -> dict:
    return flatten(config.to_dict())


def test_paper_recipe_equals_the_defaults():
    plain, paper = mrn.Config("FetchPush"), mrn.Config.of("FetchPush", recipe="paper")
    assert plain == paper == mrn.Config.of("FetchPush")
    assert (plain.schedule.num_envs, plain.schedule.gradient_steps) == (20, 40)
    assert plain.schedule.cycles == 50
    assert plain.folder.parts == ("FetchPush", "ddpg-mrn", "seed-100")


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize("name", RECIPES)
def test_recipe_differs_from_the_paper_only_in_its_settings(name, algo):
    chosen = settings(mrn.Config("FetchPush", recipe=name, algo=algo))
    paper = settings(mrn.Config("FetchPush", algo=algo))
    preset = {**RECIPES[name], **OVERRIDES.get((name, algo), {}), "recipe": name}
    assert chosen == paper | {key: value for key, value in preset.items() if key in paper}


def test_fast_recipe_sets_target_updates_for_all_and_action_penalty_except_for_sac():
    for algo in ("ddpg", "td3", "sac", "wgcsl"):
        chosen = mrn.Config("FetchPush", recipe="fast", algo=algo).algo_config
        assert (chosen.tau, chosen.target_update_interval) == (0.1, 4)
    penalties = [
        mrn.Config("FetchPush", recipe="fast", algo=algo).algo_config.action_penalty
        for algo in ("ddpg", "td3", "sac")
    ]
    assert penalties == [0.3, 0.3, 0]


def test_single_settings_override_the_recipe():
    config = mrn.Config.of("FetchPush", recipe="fast", num_envs=7, learning_rate=2e-4)
    assert settings(config) == settings(mrn.Config("FetchPush", recipe="fast")) | {
        "num_envs": 7,
        "learning_rate": 2e-4,
    }
    own = mrn.Config("FetchPush", recipe="fast", schedule=Schedule())
    assert own.schedule.num_envs == 20
    assert own.replay == mrn.Config("FetchPush", recipe="fast").replay


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize(
    ("group", "single"),
    [
        ("algo_config", {"batch_size": 512}),
        ("learning", {"batch_size": 512}),  # name of version 0.1
        ("schedule", {"cycles": 3}),
        ("replay", {"buffer_size": 5000}),
        ("replay", {}),
    ],
)
def test_incomplete_group_in_a_file_is_completed_by_the_recipe(algo, group, single):
    name = "agent" if group == "learning" else "algo"
    data = {"task": "FetchPush", "recipe": "fast", name: algo, group: single}
    expected = mrn.Config.of("FetchPush", recipe="fast", algo=algo, **single)
    assert mrn.Config.from_json(data, "config.json") == expected


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize(("before", "after"), [("paper", "fast"), ("fast", "paper")])
def test_settings_of_one_recipe_under_the_name_of_another_raise(algo, before, after):
    config = mrn.Config.of("FetchPush", recipe=before, algo=algo, batch_size=512)
    message = f"are those of recipe '{before}', not of '{after}'.*Config.of.*recipe='{after}'"
    with pytest.raises(mrn.UserError, match=message):
        dataclasses.replace(config, recipe=after)
    assert dataclasses.replace(config, recipe=before, epochs=3).epochs == 3


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize("single", [{"warmup_episodes": 7}, {"redraws": 2}])
def test_one_changed_setting_does_not_hide_the_groups_of_another_recipe(algo, single):
    config = mrn.Config.of("FetchPush", algo=algo, **single)
    with pytest.raises(mrn.UserError, match="are those of recipe 'paper', not of 'fast'"):
        dataclasses.replace(config, recipe="fast")
    # An explicit copy of a group is the user's choice.
    fast = mrn.Config("FetchPush", algo=algo, recipe="fast")
    schedule = dataclasses.replace(config.schedule, cycles=3)
    assert dataclasses.replace(fast, schedule=schedule).schedule == schedule


@pytest.mark.parametrize("task", ["FetchReach", "FetchReach-v4"])
def test_tuned_recipe_is_fast_with_the_settings_of_the_task_family(task):
    fast = settings(mrn.Config(task, recipe="fast"))
    tuned = mrn.Config(task, recipe="tuned")
    assert settings(tuned) == fast | FAMILIES["FetchReach"]["ddpg"] | {"recipe": "tuned"}
    assert settings(mrn.Config.of(task, recipe="tuned", tau=0.5)) == settings(tuned) | {"tau": 0.5}
    data = {"task": task, "recipe": "tuned", "algo_config": {"tau": 0.5}}
    assert mrn.Config.from_json(data, "here") == mrn.Config.of(task, recipe="tuned", tau=0.5)
    assert mrn.Config.from_json(json.loads(json.dumps(tuned.to_dict())), "here") == tuned
    assert tuned.folder.parts[1] == "ddpg-mrn+tuned"
    assert tuned.arguments() == [task, "--recipe=tuned"]


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_tuned_recipe_is_fast_without_an_entry(algo):
    fast = settings(mrn.Config("FetchPush", recipe="fast", algo=algo))
    assert settings(mrn.Config("FetchPush", recipe="tuned", algo=algo)) == fast | {
        "recipe": "tuned"
    }


def test_longest_prefix_with_the_algorithm_has_the_tuned_settings(monkeypatch):
    monkeypatch.setitem(FAMILIES, "FetchPushDense", {"sac": {"tau": 0.3}})
    monkeypatch.setitem(FAMILIES, "Fetch", {"ddpg": {"tau": 0.2}, "sac": {"batch_size": 64}})

    def tuned(task: str, algo: str) -> dict:
        return settings(mrn.Config(task, recipe="tuned", algo=algo))

    assert tuned("FetchPushDense-v4", "ddpg")["tau"] == 0.2
    dense, plain = tuned("FetchPushDense-v4", "sac"), tuned("FetchPush", "sac")
    assert (dense["tau"], dense["batch_size"]) == (0.3, 1024)
    assert (plain["tau"], plain["batch_size"], plain["action_penalty"]) == (0.1, 64, 0)
    assert tuned("FetchReach", "ddpg")["tau"] == FAMILIES["FetchReach"]["ddpg"]["tau"]


def test_tuned_settings_belong_to_a_task_and_differ_from_fast():
    for prefix, algorithms in FAMILIES.items():
        (task, *_) = (name for name in TASKS if name.startswith(prefix))
        for algo, own in algorithms.items():
            fast = settings(mrn.Config(task, recipe="fast", algo=algo))
            assert all(value != fast[name] for name, value in own.items())
            mrn.Config.of(task, recipe="fast", algo=algo, **own)  # valid, as in the search


def test_runs_from_before_the_settings_were_tuned_can_be_read():
    for settings_of, name in (("fast", "tuned"), ("tuned", "fast")):
        old = mrn.Config("FetchReach", recipe=settings_of).to_dict() | {"recipe": name}
        assert mrn.Config.from_json(old, "here").to_dict() == old


def test_run_folder_and_config_name_the_recipe():
    config = mrn.Config.of("FetchPush", recipe="fast", variant="mine")
    assert config.folder.parts[1] == "ddpg-mrn+fast+mine"
    again = mrn.Config.from_json(json.loads(json.dumps(config.to_dict())), "here")
    assert again == config
    # Files from before recipes existed have the paper's.
    old = mrn.Config.of("FetchPush", num_envs=3).to_dict()
    del old["recipe"]
    assert mrn.Config.from_json(old, "here").recipe == "paper"


def test_algorithm_ignores_recipe_settings_it_lacks(monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "cloner", Cloner)
    config = mrn.Config("FetchPush", algo="cloner", recipe="fast")
    assert config.schedule == mrn.Config("FetchPush", recipe="fast").schedule
    assert not hasattr(config.algo_config, "tau")


def test_variant_cannot_start_with_a_recipe_name():
    with pytest.raises(mrn.UserError, match="variant 'fast\\+mine' .* recipe"):
        mrn.Config.of("FetchPush", variant="fast+mine")


def test_unknown_recipe_raises_with_the_list():
    with pytest.raises(mrn.UserError, match=r"unknown recipe 'quick'\. .*: paper, fast"):
        mrn.Config.of("FetchPush", recipe="quick")
    with pytest.raises(mrn.UserError, match="recipe must be of type str, got 3"):
        mrn.Config("FetchPush", recipe=3)


def test_training_uses_the_fast_recipe_by_default(tmp_path):
    assert tiny_run(tmp_path / "run").config.recipe == "fast"
    done = command("train", "FetchReach", *SMALL, "--recipe=paper", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = command("train", "FetchReach", *SMALL, "--gradient-steps=2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    runs = tmp_path / "runs/FetchReach"
    assert {path.name for path in runs.iterdir()} == {"ddpg-mrn", "ddpg-mrn+fast"}
    config = json.loads((runs / "ddpg-mrn+fast/seed-100/config.json").read_text())["config"]
    expected = mrn.Config.of(
        "FetchReach", recipe="fast", **TINY | {"epochs": 1, "gradient_steps": 2}
    )
    assert config == expected.to_dict()

    file = runs / "ddpg-mrn/seed-100/config.json"
    done = command("train", "--config", file, "--recipe=fast", cwd=tmp_path)
    assert done.returncode == 2
    assert "uses the recipe 'paper'" in done.stderr
    done = command("train", "--config", file, "--seed=3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (runs / "ddpg-mrn/seed-3/metrics.csv").exists()


def test_command_trains_with_the_tuned_settings_of_its_task(tmp_path):
    tiny = [word for word in SMALL if not word.startswith("--batch-size")]
    done = command("train", "FetchReach", "--recipe=tuned", *tiny, "--tau=0.5", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = tmp_path / "runs/FetchReach/ddpg-mrn+tuned/seed-100"
    own = {name: value for name, value in TINY.items() if name != "batch_size"} | {"tau": 0.5}
    expected = mrn.Config.of("FetchReach", recipe="tuned", **own | {"epochs": 1})
    assert json.loads((run / "config.json").read_text())["config"] == expected.to_dict()
    shown = command("train", "FetchReach", "--recipe", "tuned", "--help").stdout
    penalty = FAMILIES["FetchReach"]["ddpg"]["action_penalty"]
    assert f"(default: {penalty})" in shown.partition("--action-penalty")[2][:300]


def test_task_comes_first_with_tuned_settings(tmp_path):
    done = command("train", "--cycles", "3", "FetchReach", "--recipe=tuned", cwd=tmp_path)
    assert done.returncode == 2
    assert "the task must come first: mrn train FetchReach --recipe tuned" in done.stderr
    assert not list(tmp_path.iterdir())


def test_arguments_include_a_recipe_other_than_the_default():
    assert mrn.Config.of("FetchPush", recipe="fast", num_envs=3).arguments() == [
        "FetchPush",
        "--num-envs=3",
    ]
    assert mrn.Config("FetchPush").arguments() == ["FetchPush", "--recipe=paper"]


def test_runs_of_different_recipes_can_be_compared(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path, [0.5], seed)
        write_run(tmp_path, [0.9] * 4, seed, recipe="fast")
    assert summary_of(tmp_path).warnings == ()
    write_run(tmp_path, [0.5] * 4, 3, recipe="fast", batch_size=2048)
    (warning,) = summary_of(tmp_path).warnings
    assert warning.split(":")[0] == "FetchPush, MRN (fast)"


def test_tuned_settings_can_be_compared_with_others(tmp_path):
    for seed in (1, 2):
        for recipe in ("paper", "fast", "tuned"):
            write_run(tmp_path, [0.5] * 4, seed, task="FetchReach", recipe=recipe, cycles=25)
    assert summary_of(tmp_path).warnings == ()
    write_run(tmp_path, [0.5] * 4, 3, task="FetchReach", recipe="tuned", cycles=25, tau=0.2)
    (warning,) = summary_of(tmp_path).warnings
    assert warning == "FetchReach, MRN (tuned): seeds differ in tau"


def test_recipes_command_lists_the_settings():
    shown = command("recipes").stdout
    for name in RECIPES["fast"]:
        assert name in shown
    assert "FetchReach*" in shown
