"""Tests of the commands that list tasks, critics and algorithms."""

import re

from mrn.algorithms import ALGORITHMS
from tests.commands import mrn as command


def test_tasks_lists_paper_and_additional_tasks():
    tasks = command("tasks").stdout
    assert re.search(r"FetchPick .*FetchPickAndPlace-v4 .*25 .*3 .*4 .*50 .*50", tasks)
    paper, additional = tasks.split("Additional tasks")
    assert len(re.findall(r"-v\d .*envpool", paper)) == 12
    assert len(re.findall(r"-v\d .*envpool", additional)) == 30
    assert re.search(r"PointMaze_UMaze-v3 .*4 .*2 .*2 .*300 .*envpool", additional)


def test_critics_lists_formulas_and_parameters():
    critics = command("critics").stdout
    assert re.search(r"mrn-squared .*no .*140,656", critics)
    assert re.search(r"iqe .*union_j \[u_kj, max\(u_kj, v_kj\)\].*yes", critics)


def test_algos_lists_critics_and_settings():
    algos = command("algos").stdout
    td3, gcsl = (re.escape(ALGORITHMS[name].__doc__.split()[0]) for name in ("td3", "gcsl"))
    assert re.search(rf"(?s)td3 .*{td3}.* any .*policy_delay", algos)
    assert re.search(rf"gcsl .*{gcsl}.* none .*exploration_noise, random_action_prob", algos)
    for name in ("crl", "cmd", "tmd", "mqe", "qrl"):
        assert re.search(rf"{name} .* quasimetric .*ent_coef", algos)
