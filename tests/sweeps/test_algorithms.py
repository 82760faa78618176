"""Several agents in one sweep: trained side by side, and reported on together."""

import re

from mrn.algorithms import ALGORITHMS
from mrn.analysis.runs import find_runs
from mrn.analysis.summary import short_names
from tests.commands import mrn
from tests.sweeps.helpers import SETTINGS
from tests.training.helpers import metrics

METHODS = ["ddpg-mrn", "td3-mrn", "sac-mrn", "gcsl-none", "wgcsl-mrn"]


def test_a_suite_with_all_agents(tmp_path):
    lines = [f"{name} = {value}" for name, value in (SETTINGS | {"epochs": 1}).items()]
    suite = tmp_path / "all.toml"
    suite.write_text(
        f'tasks = ["FetchReach"]\nagents = {list(ALGORITHMS)}\ncritics = ["mrn"]\nseeds = [1]\n'
        "[settings]\n" + "\n".join(lines) + "\n[agent.td3]\nactor_every = 3\n"
    )
    runs = tmp_path / "runs"
    done = mrn("sweep", suite, "--runs", runs, "--threads=1", "--jobs=2")
    assert done.returncode == 0, done.stderr
    for method in METHODS:
        (row,) = metrics(runs / "all/FetchReach" / method / "seed-1")
        algorithm = ALGORITHMS[method.partition("-")[0]]
        assert set(algorithm.METRICS) <= set(row)
    found = {run.method: run for run in find_runs(runs / "all")}
    assert set(found) == set(METHODS)
    assert found["td3-mrn"].config.algo_config.policy_delay == 3

    done = mrn("report", runs / "all", "--out", tmp_path / "report")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report" / "index.html").read_text()
    assert all(method in page for method in METHODS)
    command = re.search(r"mrn train FetchReach [^\"]*--algo=gcsl[^\"]*", page)[0]
    assert "critic" not in command  # it has none, and needs none to be trained again
    assert "not trained alike" not in page


def test_names_are_short_where_all_have_one_agent():
    assert short_names(["sac-mrn", "sac-bvn"]) == {"sac-mrn": "mrn", "sac-bvn": "bvn"}
    assert short_names(["gcsl-none"]) == {"gcsl-none": "gcsl-none"}
    assert short_names(["sac-mrn", "td3-mrn"])["td3-mrn"] == "td3-mrn"
