"""A sweep over all algorithms, and the report about it."""

import re

from mrn.algorithms import ALGORITHMS
from mrn.analysis.runs import find_runs
from tests.commands import mrn
from tests.sweeps.helpers import SETTINGS
from tests.training.helpers import metrics

METHODS = ["ddpg-mrn", "td3-mrn", "sac-mrn", "gcsl-none", "wgcsl-mrn", "mher-mrn"]
METHODS += ["crl-mrn", "cmd-mrn", "tmd-mrn", "mqe-mrn", "qrl-mrn"]


def test_suite_with_all_algorithms(tmp_path):
    lines = [f"{name} = {value}" for name, value in (SETTINGS | {"epochs": 1}).items()]
    suite = tmp_path / "all.toml"
    suite.write_text(
        f'tasks = ["FetchReach"]\nalgos = {list(ALGORITHMS)}\ncritics = ["mrn"]\nseeds = [1]\n'
        "[settings]\n" + "\n".join(lines) + "\n[algo.td3]\npolicy_delay = 3\n"
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
    assert "critic" not in command  # the algorithm has none
    assert "methods differ in" not in page
