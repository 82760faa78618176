"""Suites: built-in ones, TOML files, grids and variants."""

import itertools

import pytest

from mrn import cli
from mrn.config import Config
from mrn.envs import TASKS, find_task
from mrn.sweeps import suites as suites_module
from mrn.sweeps.suites import SUITES, Suite, find_suite
from mrn.utils.errors import UserError
from mrn.utils.naming import Method


def test_paper_main_has_12_tasks_6_critics_and_5_seeds():
    configs = find_suite("paper-main").configs()
    runs = {(c.task, c.critic, c.seed) for c in configs}
    critics = ("mrn", "monolithic", "bvn", "dn", "wn", "pqe")
    assert runs == set(itertools.product(TASKS, critics, (100, 200, 300, 400, 500)))
    assert len(configs) == 360
    assert {c.epochs for c in configs if c.task == "FetchReach"} == {25}
    assert {c.epochs for c in configs if c.task == "PenFull"} == {100}
    assert [c.seed for c in configs[:72]] == [100] * 72  # ordered by seed


def test_second_ablation_doubles_the_learning_rate_in_a_separate_folder():
    first, second = find_suite("paper-ablation"), find_suite("paper-ablation-lr")
    assert {c.algo_config.learning_rate for c in first.configs()} == {0.001}
    assert {c.algo_config.learning_rate for c in second.configs()} == {0.002}
    assert first.folder == find_suite("paper-main").folder != second.folder
    assert [c.critic for c in second.configs()[:4]] == ["mrn", "mrn-sym", "mrn-asym", "mrn-sag"]


@pytest.mark.parametrize("name", SUITES)
def test_suites_with_a_shared_folder_agree_on_shared_runs(name):
    suite = find_suite(name)
    own = {c.folder: c for c in suite.configs()}
    for other in map(find_suite, SUITES):
        if other.folder == suite.folder:
            assert all(own.get(c.folder, c) == c for c in other.configs())


def test_custom_suite(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'tasks = ["FetchReach", "FetchPush"]\ncritics = ["iqe"]\nseeds = [7]\n'
        "[settings]\nepochs = 3\nbatch_size = 256\n"
    )
    suite = find_suite(str(file))
    assert suite.folder == "mine"
    expected = [Config.of(t, critic="iqe", seed=7, epochs=3, batch_size=256) for t in suite.tasks]
    assert suite.configs() == expected


def test_recipes_are_a_dimension_of_the_suite(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'tasks = ["FetchReach"]\nrecipes = ["fast", "paper"]\ncritics = ["mrn", "bvn"]\n'
        "seeds = [7]\n[settings]\nepochs = 3\n"
    )
    expected = [
        Config.of("FetchReach", critic=c, recipe=r, seed=7, epochs=3)
        for r in ("fast", "paper")
        for c in ("mrn", "bvn")
    ]
    assert find_suite(str(file)).configs() == expected
    assert [c.method for c in expected] == [
        "ddpg-mrn+fast",
        "ddpg-bvn+fast",
        "ddpg-mrn",
        "ddpg-bvn",
    ]
    file.write_text('tasks = ["FetchReach"]\nrecipes = ["quick"]\n')
    with pytest.raises(UserError, match="unknown recipe 'quick'.*: paper, fast"):
        find_suite(str(file))
    file.write_text('tasks = ["FetchReach"]\n[settings]\nrecipe = "fast"\n')
    with pytest.raises(UserError, match="recipe belongs to 'recipes' above the tables"):
        find_suite(str(file))


def test_task_settings_override_and_grid_combinations_are_methods(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'tasks = ["FetchReach", "FetchPush"]\nseeds = [7]\n'
        "[settings]\nepochs = 3\nhidden_dim = 32\n"
        "[algo.ddpg]\nhidden_dim = 64\naction_penalty = 0.5\n"
        "[task.FetchPush]\nepochs = 9\n"
        "[grid]\nlearning_rate = [1e-3, 0.00002]\nasync_envs = [true, false]\n"
    )
    configs = find_suite(str(file)).configs()
    variants = [
        ("learning_rate=0.001+async_envs=true", 1e-3, True),
        ("learning_rate=0.001+async_envs=false", 1e-3, False),
        ("learning_rate=2e-05+async_envs=true", 2e-5, True),
        ("learning_rate=2e-05+async_envs=false", 2e-5, False),
    ]
    assert [
        (c.task, c.epochs, c.variant, c.algo_config.learning_rate, c.async_envs) for c in configs
    ] == [
        (task, epochs, *choice)
        for task, epochs in (("FetchReach", 3), ("FetchPush", 9))
        for choice in variants
    ]
    assert {(c.algo_config.hidden_dim, c.algo_config.action_penalty) for c in configs} == {
        (64, 0.5)
    }
    assert (
        str(configs[0].folder) == "FetchReach/ddpg-mrn+learning_rate=0.001+async_envs=true/seed-7"
    )
    assert Method.parse(configs[0].method) == ("ddpg", "mrn", "learning_rate=0.001+async_envs=true")


def test_each_task_is_looked_up_once_even_if_epochs_are_set(monkeypatch):
    requested = []
    suites_module._find_task.cache_clear()
    monkeypatch.setattr(suites_module, "find_task", lambda *a: requested.append(a) or find_task(*a))
    tasks = ("FetchReach", "FetchPush")
    assert len(Suite(tasks, ("mrn", "bvn"), settings={"epochs": 2}).configs()) == 20
    assert requested == [("FetchReach", 0.0, {}), ("FetchPush", 0.0, {})]
    with pytest.raises(UserError, match="Did you mean 'FetchPush'?"):
        Suite(("FetchPusch",), settings={"epochs": 2}).configs()


def test_variant_setting_is_the_prefix_of_grid_labels():
    suite = Suite(
        ("FetchReach",), settings={"variant": "big"}, grid={"goal_selection_strategy": ["final"]}
    )
    assert suite.configs()[0].variant == "big+goal_selection_strategy=final"
    assert Suite(("FetchReach",)).configs()[0].variant == ""


def test_every_combination_is_trained_once_per_variant(tmp_path):
    file = tmp_path / "ablation.toml"
    file.write_text(
        'tasks = ["FetchReach"]\nrecipes = ["fast"]\ncritics = ["mrn", "bvn"]\nseeds = [7, 8]\n'
        '[[variant]]\nname = ""\n'
        '[[variant]]\nname = "slow-targets"\ntarget_update_interval = 0\n'
        '[[variant]]\nname = "big"\nhidden_dim = 512\nbatch_size = 2048\n'
    )
    configs = find_suite(str(file)).configs()
    assert len(configs) == 2 * 2 * 3
    assert [
        (
            config.method,
            config.algo_config.target_update_interval,
            config.algo_config.hidden_dim,
            config.algo_config.batch_size,
        )
        for config in configs[:6]
    ] == [
        (f"ddpg-{critic}+fast{name}", *settings)
        for critic in ("mrn", "bvn")
        for name, settings in (
            ("", (4, 256, 1024)),
            ("+slow-targets", (0, 256, 1024)),
            ("+big", (4, 512, 2048)),
        )
    ]
    assert [config.seed for config in configs] == [7] * 6 + [8] * 6
    assert str(configs[1].folder) == "FetchReach/ddpg-mrn+fast+slow-targets/seed-7"


def test_variants_combine_with_a_grid():
    variants = ({"name": ""}, {"name": "target_every=0", "target_update_interval": 0})
    suite = Suite(("FetchReach",), seeds=(7,), variant=variants, grid={"redraws": [0, 4]})
    assert [config.variant for config in suite.configs()] == [
        "redraws=0",
        "redraws=4",
        "target_every=0+redraws=0",
        "target_every=0+redraws=4",
    ]


def test_algorithm_without_critic_occurs_once(tmp_path):
    file = tmp_path / "mine.toml"
    lists = 'tasks = ["FetchReach"]\nseeds = [7]\nalgos = ["ddpg", "gcsl", "wgcsl"]\n'
    file.write_text(lists + 'critics = ["mrn", "bvn"]\n')
    methods = [config.method for config in find_suite(str(file)).configs()]
    assert methods == ["ddpg-mrn", "ddpg-bvn", "gcsl-none", "wgcsl-mrn", "wgcsl-bvn"]
    file.write_text(lists + 'critics = ["none", "mrn"]\n')  # `none` applies to gcsl only
    methods = [config.method for config in find_suite(str(file)).configs()]
    assert methods == ["ddpg-mrn", "gcsl-none", "wgcsl-mrn"]
    file.write_text(lists)
    assert [config.method for config in find_suite(str(file)).configs()] == methods
    for algos, critics, message in (
        (["gcsl"], ["bvn"], r"no algorithm of the suite \(gcsl\) has a critic: remove 'critics'"),
        (["gcsl", "ddpg"], ["none"], "'ddpg' needs a critic"),
    ):
        file.write_text(f"tasks = ['FetchReach']\nalgos = {algos}\ncritics = {critics}\n")
        with pytest.raises(UserError, match=message):
            find_suite(str(file))


def test_unknown_suite_raises():
    with pytest.raises(UserError, match="Did you mean 'paper-main'?"):
        find_suite("papermain")
    with pytest.raises(UserError, match="cannot read none.toml"):
        find_suite("none.toml")


@pytest.mark.parametrize(
    "config",
    [
        Config("FetchPush"),
        Config.of("FetchReach", seed=3, learning_rate=1e-5, async_envs=True, threads=2),
        Config.of(
            "HandManipulateEggFull-v1",
            reward_shift=-0.25,
            goal_selection_strategy="final",
            epochs=4,
        ),
    ],
)
def test_arguments_of_a_run_parse_to_its_settings(config, monkeypatch):
    parsed = []
    monkeypatch.setattr(cli.training, "_run", lambda config, *_: parsed.append(config))
    monkeypatch.setattr("sys.argv", ["mrn", "train", *config.arguments()])
    cli.main()
    assert parsed == [config]
