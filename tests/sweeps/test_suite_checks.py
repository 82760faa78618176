"""Error messages for malformed suites."""

from dataclasses import dataclass

import pytest

from mrn.algorithms import ALGORITHMS, DDPG
from mrn.sweeps.suites import Suite, find_suite
from mrn.utils.errors import UserError


def test_setting_of_a_single_algorithm_belongs_in_its_table(monkeypatch):
    @dataclass(frozen=True)
    class OtherSettings(DDPG.Settings):
        lag: int = 2

    class Other(DDPG):
        Settings = OtherSettings

    monkeypatch.setitem(ALGORITHMS, "other", Other)
    algos = ("ddpg", "other")
    with pytest.raises(UserError, match=r"\[settings\]: algorithm 'ddpg': .* to \[algo.other\]"):
        Suite(("FetchReach",), algos=algos, settings={"lag": 3}).configs()
    with pytest.raises(UserError, match=r"\[grid\]: algorithm 'ddpg': .* to a separate suite"):
        Suite(("FetchReach",), algos=algos, grid={"lag": [3]}).configs()
    configs = Suite(("FetchReach",), algos=algos, algo={"other": {"lag": 3}}).configs()
    assert [getattr(c.algo_config, "lag", None) for c in configs[:2]] == [None, 3]


def test_variant_with_a_setting_of_another_algorithm_raises():
    variants = ({"name": "late", "policy_delay": 3},)
    with pytest.raises(
        UserError, match=r"\[\[variant\]\] 'late': algorithm 'gcsl': .*separate suite"
    ):
        Suite(("FetchReach",), algos=("td3", "gcsl"), variant=variants).configs()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tasks = [", "mine.toml is not valid TOML"),
        ("tasks = []", "tasks must not be empty"),
        ("critics = ['mrn']", 'tasks is missing: add, for example, tasks = ["FetchPush"]'),
        ("taks = ['FetchReach']", "Did you mean 'tasks'?"),
        ("tasks = ['FetchReach']\nseed = 1", "seed must be a list named 'seeds': seeds = [...]"),
        ("task = 'FetchReach'", "task must be a list named 'tasks': tasks = [...]"),
        ("tasks = ['FetchReach']\nepochs = 3", "epochs is a setting of the runs: put it under"),
        ("tasks = 'FetchReach'", "tasks must be a list"),
        ("tasks = ['FetchReech']", "Did you mean 'FetchReach'?"),
        ("tasks = ['FetchReach']\ncritics = ['mnr']", "Did you mean 'mrn'?"),
        ("tasks = ['FetchReach']\nalgos = ['dpg']", "Did you mean 'ddpg'?"),
        ("tasks = ['FetchReach']\ncritic = ['mrn']", "critic must be a list named 'critics'"),
        ("tasks = ['FetchReach']\nseeds = [1, 1]", "seed-1 occurs twice"),
        ("tasks = ['FetchReach']\nseeds = ['1']", "seeds must be of type int"),
        ("tasks = ['FetchReach']\nsettings = 3", "settings must be a table"),
        ("tasks = ['FetchReach']\n[settings]\nepochs = 0", "[settings]: epochs must be at least 1"),
        ("tasks = ['FetchReach']\n[settings]\nepoch = 1", "Did you mean 'epochs'?"),
        ("tasks = ['FetchReach']\n[settings]\nseed = 1", "[settings]: seed belongs to 'seeds'"),
        ("tasks = ['FetchReach']\n[task.FetchRech]\nepochs = 1", "Did you mean 'FetchReach'?"),
        ("tasks = ['FetchReach']\n[task]\nFetchReach = 1", "must be a separate table, [task.F"),
        (
            "tasks = ['FetchReach']\n[task.FetchReach]\nhidden_dim = 0",
            "[task.FetchReach]: hidden_dim must be",
        ),
        ("tasks = ['FetchReach']\n[task.FetchReach]\nalgo = 'a'", "algo belongs to 'algos'"),
        ("tasks = ['FetchReach']\n[algo.ddgp]\nhidden_dim = 8", "Did you mean 'ddpg'?"),
        (
            "tasks = ['FetchReach']\n[algo.ddpg]\nhidden_dmi = 8",
            "[algo.ddpg]: unknown setting 'hidden_dmi'",
        ),
        ("tasks = ['FetchReach']\n[grid]\nhidden_dim = 8", "for example hidden_dim = [8], got 8"),
        (
            "tasks = ['FetchReach']\n[grid]\nhidden_dim = []",
            "for example hidden_dim = [1, 2], got []",
        ),
        (
            "tasks = ['FetchReach']\n[grid]\nhidden_dim = [8, 0]",
            "[grid]: hidden_dim must be at least 2",
        ),
        (
            "tasks = ['FetchReach']\n[grid]\nhidden_dim = [8, 8]",
            "hidden_dim=8/seed-100 occurs twice",
        ),
        ("tasks = ['FetchReach']\n[grid]\ncritic = ['mrn']", "[grid]: critic belongs to 'critics'"),
        (
            "tasks = ['FetchReach']\n[grid]\nvariant = ['a']",
            "[grid]: variant is not a setting here",
        ),
        (
            "tasks = ['FetchReach']\n[settings]\nhidden_dim = 8\n[grid]\nhidden_dim = [8, 16]",
            "[settings]: hidden_dim is also under [grid]",
        ),
        *(
            (f"tasks = ['FetchReach']\n{text}", message)
            for text, message in (
                ("variant = 'x'", "variant must be a repeated table: write [[variant]]"),
                ("[variant]\nname = 'x'", "variant must be a repeated table: write [[variant]]"),
                ("[[variant]]\nredraws = 0", "[[variant]] number 1: name is missing"),
                ("[[variant]]\nname = 3", "[[variant]] number 1: name must consist of letters"),
                ("[[variant]]\nname = 'a b'", "digits, '-', '_', '.' and '=', got 'a b'"),
                ("[[variant]]\nname = 'a+b'", "digits, '-', '_', '.' and '=', got 'a+b'"),
                ("[[variant]]\nname = 'fast'", "'fast' is the name of a recipe"),
                (
                    "[[variant]]\nname = 'x'\n[[variant]]\nname = 'x'",
                    "[[variant]] number 2: the name 'x' occurs twice",
                ),
                ("[[variant]]\nname = ''\nredraws = 0", 'name = "" is the baseline'),
                (
                    "[[variant]]\nname = 'x'\nredrwas = 0",
                    "[[variant]] 'x': unknown setting 'redrwas'. Did you mean 'redraws'?",
                ),
                ("[[variant]]\nname = 'x'\ntau = 2", "[[variant]] 'x': tau must be at most 1"),
                ("[[variant]]\nname = 'x'\nseed = 1", "[[variant]] 'x': seed belongs to 'seeds'"),
                (
                    "[[variant]]\nname = 'x'\nvariant = 'y'",
                    "[[variant]] 'x': variant is not a setting here",
                ),
                (
                    "[settings]\nvariant = 'y'\n[[variant]]\nname = 'x'",
                    "[settings]: variant cannot be combined with [[variant]]",
                ),
                (
                    "[settings]\nredraws = 1\n[[variant]]\nname = 'x'\nredraws = 0",
                    "[settings]: redraws is also in a [[variant]]; keep one of them",
                ),
                (
                    "[task.FetchReach]\nredraws = 1\n[[variant]]\nname = 'x'\nredraws = 0",
                    "[task.FetchReach]: redraws is also in a [[variant]]; keep one of them",
                ),
                (
                    "[grid]\nredraws = [1]\n[[variant]]\nname = 'x'\nredraws = 0",
                    "[[variant]] 'x': redraws is also under [grid]; keep one of them",
                ),
            )
        ),
        (
            "tasks = ['FetchReach']\nfolder = '../x'",
            "folder must be inside the runs folder, got '../x'",
        ),
    ],
)
def test_malformed_suite_raises(tmp_path, text, message):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(UserError, match="mine.toml") as caught:
        find_suite(str(file))
    assert message in str(caught.value)
