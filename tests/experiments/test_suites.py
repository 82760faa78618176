import itertools

import pytest

from mrn import cli
from mrn.config import Config
from mrn.envs import TASKS
from mrn.errors import UserError
from mrn.experiments.suites import SUITES, find_suite


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
    assert {c.learning.learning_rate for c in first.configs()} == {0.001}
    assert {c.learning.learning_rate for c in second.configs()} == {0.002}
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tasks = [", "mine.toml is not TOML"),
        ("tasks = []", "tasks is empty"),
        ("critics = ['mrn']", "tasks"),
        ("tasks = 'FetchReach'", "tasks must be a list"),
        ("tasks = ['FetchReech']", "Did you mean 'FetchReach'?"),
        ("tasks = ['FetchReach']\ncritics = ['mnr']", "Did you mean 'mrn'?"),
        ("tasks = ['FetchReach']\nagents = ['dpg']", "Did you mean 'ddpg'?"),
        ("tasks = ['FetchReach']\ncritic = ['mrn']", "unknown field 'critic'"),
        ("tasks = ['FetchReach']\nseeds = [1, 1]", "seed-1 is there twice"),
        ("tasks = ['FetchReach']\nseeds = ['1']", "seeds must be of type int"),
        ("tasks = ['FetchReach']\nsettings = 3", "settings must be a table"),
        ("tasks = ['FetchReach']\n[settings]\nepochs = 0", "epochs must be at least 1"),
        ("tasks = ['FetchReach']\n[settings]\nepoch = 1", "Did you mean 'epochs'?"),
        ("tasks = ['FetchReach']\n[settings]\nseed = 1", "belongs to 'seeds'"),
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
        Config.of("FetchReach", seed=3, learning_rate=1e-5, workers=True, threads=2),
        Config.of("HandManipulateEggFull-v1", reward_shift=-0.25, relabel="final", epochs=4),
    ],
)
def test_the_command_of_a_run_parses_to_its_settings(config, monkeypatch):
    parsed = []
    monkeypatch.setattr(cli.training, "_run", lambda config, *_: parsed.append(config))
    monkeypatch.setattr("sys.argv", ["mrn", "train", *config.arguments()])
    cli.main()
    assert parsed == [config]
