import itertools
from dataclasses import dataclass

import pytest

from mrn import cli
from mrn.algorithms import ALGORITHMS, DDPG
from mrn.config import Config
from mrn.envs import TASKS, find_task
from mrn.sweeps import suite as suite_module
from mrn.sweeps.suites import SUITES, Suite, find_suite
from mrn.utils.errors import UserError
from mrn.utils.naming import Method


def test_paper_main_is_12_tasks_6_critics_5_seeds_for_the_papers_epochs():
    configs = find_suite("paper-main").configs()
    runs = {(c.task, c.critic, c.seed) for c in configs}
    critics = ("mrn", "monolithic", "bvn", "dn", "wn", "pqe")
    assert runs == set(itertools.product(TASKS, critics, (100, 200, 300, 400, 500)))
    assert len(configs) == 360
    assert {c.epochs for c in configs if c.task == "FetchReach"} == {25}
    assert {c.epochs for c in configs if c.task == "PenFull"} == {100}
    assert [c.seed for c in configs[:72]] == [100] * 72  # seed by seed


def test_the_second_ablation_doubles_the_learning_rate_and_shares_no_folder():
    first, second = find_suite("paper-ablation"), find_suite("paper-ablation-lr")
    assert {c.algo_config.learning_rate for c in first.configs()} == {0.001}
    assert {c.algo_config.learning_rate for c in second.configs()} == {0.002}
    assert first.folder == find_suite("paper-main").folder != second.folder
    assert [c.critic for c in second.configs()[:4]] == ["mrn", "mrn-sym", "mrn-asym", "mrn-sag"]


@pytest.mark.parametrize("name", SUITES)
def test_suites_that_share_a_folder_agree_on_the_runs_they_share(name):
    suite = find_suite(name)
    own = {c.folder: c for c in suite.configs()}
    for other in map(find_suite, SUITES):
        if other.folder == suite.folder:
            assert all(own.get(c.folder, c) == c for c in other.configs())


def test_a_suite_of_ones_own(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'tasks = ["FetchReach", "FetchPush"]\ncritics = ["iqe"]\nseeds = [7]\n'
        "[settings]\nepochs = 3\nbatch_size = 256\n"
    )
    suite = find_suite(str(file))
    assert suite.folder == "mine"
    expected = [Config.of(t, critic="iqe", seed=7, epochs=3, batch_size=256) for t in suite.tasks]
    assert suite.configs() == expected


def test_recipes_are_compared_like_critics(tmp_path):
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
    with pytest.raises(UserError, match="unknown recipe 'quick'. There are: paper, fast"):
        find_suite(str(file))
    file.write_text('tasks = ["FetchReach"]\n[settings]\nrecipe = "fast"\n')
    with pytest.raises(UserError, match="recipe belongs to 'recipes' above the tables"):
        find_suite(str(file))


def test_settings_of_a_task_come_before_those_of_all_and_a_grid_is_methods(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'tasks = ["FetchReach", "FetchPush"]\nseeds = [7]\n'
        "[settings]\nepochs = 3\nwidth = 32\n"
        "[agent.ddpg]\nwidth = 64\naction_penalty = 0.5\n"
        "[task.FetchPush]\nepochs = 9\n"
        "[grid]\nlearning_rate = [1e-3, 0.00002]\nworkers = [true, false]\n"
    )
    configs = find_suite(str(file)).configs()
    variants = [
        ("learning_rate=0.001+async_envs=true", 1e-3, True),
        ("learning_rate=0.001+async_envs=false", 1e-3, False),
        ("learning_rate=2e-05+async_envs=true", 2e-5, True),
        ("learning_rate=2e-05+async_envs=false", 2e-5, False),
    ]
    assert [
        (c.task, c.epochs, c.variant, c.algo_config.learning_rate, c.workers) for c in configs
    ] == [
        (task, epochs, *choice)
        for task, epochs in (("FetchReach", 3), ("FetchPush", 9))
        for choice in variants
    ]
    assert {(c.algo_config.width, c.algo_config.action_penalty) for c in configs} == {(64, 0.5)}
    assert (
        str(configs[0].folder) == "FetchReach/ddpg-mrn+learning_rate=0.001+async_envs=true/seed-7"
    )
    assert Method.parse(configs[0].method) == ("ddpg", "mrn", "learning_rate=0.001+async_envs=true")


def test_a_task_is_looked_at_once_even_where_the_epochs_are_given(monkeypatch):
    asked = []
    suite_module._find.cache_clear()
    monkeypatch.setattr(suite_module, "find_task", lambda *a: asked.append(a) or find_task(*a))
    tasks = ("FetchReach", "FetchPush")
    assert len(Suite(tasks, ("mrn", "bvn"), settings={"epochs": 2}).configs()) == 20
    assert asked == [("FetchReach", 0.0, {}), ("FetchPush", 0.0, {})]
    with pytest.raises(UserError, match="Did you mean 'FetchPush'?"):
        Suite(("FetchPusch",), settings={"epochs": 2}).configs()


def test_a_variant_of_ones_own_comes_first_in_the_name_of_a_combination():
    suite = Suite(
        ("FetchReach",), settings={"variant": "big"}, grid={"goal_selection_strategy": ["final"]}
    )
    assert suite.configs()[0].variant == "big+goal_selection_strategy=final"
    assert Suite(("FetchReach",)).configs()[0].variant == ""


def test_an_agent_without_a_critic_is_there_once(tmp_path):
    file = tmp_path / "mine.toml"
    lists = 'tasks = ["FetchReach"]\nseeds = [7]\nagents = ["ddpg", "gcsl", "wgcsl"]\n'
    file.write_text(lists + 'critics = ["mrn", "bvn"]\n')
    methods = [config.method for config in find_suite(str(file)).configs()]
    assert methods == ["ddpg-mrn", "ddpg-bvn", "gcsl-none", "wgcsl-mrn", "wgcsl-bvn"]
    file.write_text(lists + 'critics = ["none", "mrn"]\n')  # for those it is meant for
    methods = [config.method for config in find_suite(str(file)).configs()]
    assert methods == ["ddpg-mrn", "gcsl-none", "wgcsl-mrn"]
    file.write_text(lists)
    assert [config.method for config in find_suite(str(file)).configs()] == methods
    for agents, critics, message in (
        (["gcsl"], ["bvn"], r"no agent of the suite \(gcsl\) has a critic: leave 'critics' out"),
        (["gcsl", "ddpg"], ["none"], "agent 'ddpg' needs a critic"),
    ):
        file.write_text(f"tasks = ['FetchReach']\nagents = {agents}\ncritics = {critics}\n")
        with pytest.raises(UserError, match=message):
            find_suite(str(file))


def test_a_setting_that_only_one_agent_has_is_sent_to_its_table(monkeypatch):
    @dataclass(frozen=True)
    class OtherSettings(DDPG.Settings):
        delay: int = 2

    class Other(DDPG):
        Settings = OtherSettings

    monkeypatch.setitem(ALGORITHMS, "other", Other)
    agents = ("ddpg", "other")
    with pytest.raises(UserError, match=r"\[settings\]: agent 'ddpg': .* goes to \[agent.other\]"):
        Suite(("FetchReach",), agents=agents, settings={"delay": 3}).configs()
    with pytest.raises(UserError, match=r"\[grid\]: agent 'ddpg': .* goes to a suite of its own"):
        Suite(("FetchReach",), agents=agents, grid={"delay": [3]}).configs()
    configs = Suite(("FetchReach",), agents=agents, agent={"other": {"delay": 3}}).configs()
    assert [getattr(c.algo_config, "delay", None) for c in configs[:2]] == [None, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tasks = [", "mine.toml is not TOML"),
        ("tasks = []", "tasks is empty"),
        ("critics = ['mrn']", 'tasks is missing, for example tasks = ["FetchPush"]'),
        ("taks = ['FetchReach']", "Did you mean 'tasks'?"),
        ("tasks = ['FetchReach']\nseed = 1", "seed must be a list named 'seeds': seeds = [...]"),
        ("task = 'FetchReach'", "task must be a list named 'tasks': tasks = [...]"),
        ("tasks = ['FetchReach']\nepochs = 3", "epochs is a setting of the runs: put it under"),
        ("tasks = 'FetchReach'", "tasks must be a list"),
        ("tasks = ['FetchReech']", "Did you mean 'FetchReach'?"),
        ("tasks = ['FetchReach']\ncritics = ['mnr']", "Did you mean 'mrn'?"),
        ("tasks = ['FetchReach']\nagents = ['dpg']", "Did you mean 'ddpg'?"),
        ("tasks = ['FetchReach']\ncritic = ['mrn']", "critic must be a list named 'critics'"),
        ("tasks = ['FetchReach']\nseeds = [1, 1]", "seed-1 is there twice"),
        ("tasks = ['FetchReach']\nseeds = ['1']", "seeds must be of type int"),
        ("tasks = ['FetchReach']\nsettings = 3", "settings must be a table"),
        ("tasks = ['FetchReach']\n[settings]\nepochs = 0", "[settings]: epochs must be at least 1"),
        ("tasks = ['FetchReach']\n[settings]\nepoch = 1", "Did you mean 'epochs'?"),
        ("tasks = ['FetchReach']\n[settings]\nseed = 1", "[settings]: seed belongs to 'seeds'"),
        ("tasks = ['FetchReach']\n[task.FetchRech]\nepochs = 1", "Did you mean 'FetchReach'?"),
        ("tasks = ['FetchReach']\n[task]\nFetchReach = 1", "must be a table of its own, [task.F"),
        (
            "tasks = ['FetchReach']\n[task.FetchReach]\nwidth = 0",
            "[task.FetchReach]: width must be",
        ),
        ("tasks = ['FetchReach']\n[task.FetchReach]\nagent = 'a'", "agent belongs to 'agents'"),
        ("tasks = ['FetchReach']\n[agent.ddgp]\nwidth = 8", "Did you mean 'ddpg'?"),
        (
            "tasks = ['FetchReach']\n[agent.ddpg]\nwidht = 8",
            "[agent.ddpg]: unknown setting 'widht'",
        ),
        ("tasks = ['FetchReach']\n[grid]\nwidth = 8", "for example width = [8], got 8"),
        ("tasks = ['FetchReach']\n[grid]\nwidth = []", "for example width = [1, 2], got []"),
        ("tasks = ['FetchReach']\n[grid]\nwidth = [8, 0]", "[grid]: width must be at least 2"),
        ("tasks = ['FetchReach']\n[grid]\nwidth = [8, 8]", "hidden_dim=8/seed-100 is there twice"),
        ("tasks = ['FetchReach']\n[grid]\ncritic = ['mrn']", "[grid]: critic belongs to 'critics'"),
        ("tasks = ['FetchReach']\n[grid]\nvariant = ['a']", "[grid]: the variants' names are made"),
        (
            "tasks = ['FetchReach']\n[settings]\nwidth = 8\n[grid]\nwidth = [8, 16]",
            "[settings]: width is under [grid], too",
        ),
        ("tasks = ['FetchReach']\nfolder = '../x'", "below the folder of all runs"),
    ],
)
def test_a_malformed_suite_is_refused(tmp_path, text, message):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(UserError, match="mine.toml") as caught:
        find_suite(str(file))
    assert message in str(caught.value)


def test_unknown_suites_are_named():
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
def test_the_command_of_a_run_parses_to_its_settings(config, monkeypatch):
    parsed = []
    monkeypatch.setattr(cli.training, "_run", lambda config, *_: parsed.append(config))
    monkeypatch.setattr("sys.argv", ["mrn", "train", *config.arguments()])
    cli.main()
    assert parsed == [config]
