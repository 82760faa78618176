"""A recipe is where settings that are not given come from; a run says which one it had."""

import json

import pytest

import mrn
from mrn.algorithms import ALGORITHMS
from mrn.config import Schedule, flatten
from mrn.recipes import EXCEPTIONS, RECIPES
from tests.algorithms.test_interface import Cloner
from tests.analysis.test_summary import summary_of
from tests.commands import mrn as command
from tests.sweeps.helpers import write_run
from tests.training.helpers import TINY, tiny_run

SMALL = [f"--{name.replace('_', '-')}={value}" for name, value in (TINY | {"epochs": 1}).items()]


def settings(config: mrn.Config) -> dict:
    return flatten(config.to_dict())


def test_the_papers_recipe_is_what_the_settings_are_by_default():
    plain, paper = mrn.Config("FetchPush"), mrn.Config.of("FetchPush", recipe="paper")
    assert plain == paper == mrn.Config.of("FetchPush")
    assert (plain.schedule.episodes, plain.schedule.updates, plain.schedule.cycles) == (20, 40, 50)
    assert plain.folder.parts == ("FetchPush", "ddpg-mrn", "seed-100")


@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_differs_from_the_papers_in_its_settings_alone(name, algo):
    ours = settings(mrn.Config("FetchPush", recipe=name, algo=algo))
    papers = settings(mrn.Config("FetchPush", algo=algo))
    own = {**RECIPES[name], **EXCEPTIONS.get((name, algo), {}), "recipe": name}
    assert ours == papers | {key: value for key, value in own.items() if key in papers}


def test_the_fast_recipe_moves_the_targets_of_all_agents_alike_and_leaves_sac_its_entropy():
    for agent in ("ddpg", "td3", "sac", "wgcsl"):
        learning = mrn.Config("FetchPush", recipe="fast", algo=agent).algo_config
        assert (learning.tau, learning.target_update_interval) == (0.9, 4)
    penalties = [
        mrn.Config("FetchPush", recipe="fast", algo=agent).algo_config.action_penalty
        for agent in ("ddpg", "td3", "sac")
    ]
    assert penalties == [0.3, 0.3, 0]


def test_settings_given_beside_a_recipe_win():
    config = mrn.Config.of("FetchPush", recipe="fast", num_envs=7, learning_rate=2e-4)
    assert settings(config) == settings(mrn.Config("FetchPush", recipe="fast")) | {
        "num_envs": 7,
        "learning_rate": 2e-4,
    }
    own = mrn.Config("FetchPush", recipe="fast", schedule=Schedule())
    assert own.schedule.episodes == 20
    assert own.memory == mrn.Config("FetchPush", recipe="fast").memory


def test_the_folder_and_the_settings_file_name_the_recipe():
    config = mrn.Config.of("FetchPush", recipe="fast", variant="mine")
    assert config.folder.parts[1] == "ddpg-mrn+fast+mine"
    again = mrn.Config.from_json(json.loads(json.dumps(config.to_dict())), "here")
    assert again == config
    # A file written before there were recipes is of the paper's.
    old = config.to_dict()
    del old["recipe"]
    assert mrn.Config.from_json(old, "here").recipe == "paper"


def test_an_agent_takes_the_settings_that_it_has(monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "cloner", Cloner)
    config = mrn.Config("FetchPush", algo="cloner", recipe="fast")
    assert config.schedule == mrn.Config("FetchPush", recipe="fast").schedule
    assert not hasattr(config.algo_config, "tau")


def test_a_variant_cannot_pass_for_a_recipe():
    with pytest.raises(mrn.UserError, match="variant 'fast\\+mine' begins as a recipe does"):
        mrn.Config.of("FetchPush", variant="fast+mine")


def test_an_unknown_recipe_is_refused_with_the_list():
    with pytest.raises(mrn.UserError, match=r"unknown recipe 'quick'. There are: paper, fast"):
        mrn.Config.of("FetchPush", recipe="quick")
    with pytest.raises(mrn.UserError, match="recipe must be of type str, got 3"):
        mrn.Config("FetchPush", recipe=3)


def test_training_takes_the_fast_recipe_unless_told_otherwise(tmp_path):
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
    assert "has the recipe 'paper'" in done.stderr
    done = command("train", "--config", file, "--seed=3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (runs / "ddpg-mrn/seed-3/metrics.csv").exists()


def test_a_command_that_repeats_a_run_names_the_recipe_where_it_must():
    assert mrn.Config.of("FetchPush", recipe="fast", num_envs=3).arguments() == [
        "FetchPush",
        "--num-envs=3",
    ]
    assert mrn.Config("FetchPush").arguments() == ["FetchPush", "--recipe=paper"]


def test_recipes_can_be_compared_with_each_other(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path, [0.5], seed)
        write_run(tmp_path, [0.9] * 4, seed, recipe="fast")
    assert summary_of(tmp_path).warnings == ()
    write_run(tmp_path, [0.5] * 4, 3, recipe="fast", batch_size=2048)
    assert [told.split(":")[0] for told in summary_of(tmp_path).warnings] == ["FetchPush, mrn+fast"]


def test_the_list_shows_what_differs():
    shown = command("recipes").stdout
    for name in RECIPES["fast"]:
        assert name in shown
