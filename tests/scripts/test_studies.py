"""Studies, their progress, and the same seed on two processors."""

from scripts.processors import processor_table
from scripts.progress import progress_table
from scripts.studies import ROOT, read_table, write_table
from tests.sweeps.helpers import write_run

SUITE = """
folder = "demo"
tasks = ["FetchPush"]
seeds = [100, 200, 300]
[settings]
epochs = 900
"""


def test_core_hours_are_those_of_the_published_runs(tmp_path):
    study = tmp_path / "demo"
    study.mkdir()
    (study / "README.md").touch()
    (study / "demo.toml").write_text(SUITE)
    (study / "later.toml").write_text(SUITE.replace('"demo"', '"demo/later"'))
    for seed in (100, 200):
        write_run(study, [0.5] * 900, seed)  # 3 seconds per epoch
    _, rows = progress_table(tmp_path)
    assert rows == [("demo/demo.toml", "2 of 3", "1.5"), ("demo/later.toml", "0 of 3", "")]


def test_processor_table_pairs_the_runs_of_a_seed():
    heads, rows = processor_table(ROOT / "results" / "fetch-push")
    assert heads == ("critic", "processor", *"12345678")
    assert ("`monolithic`", "Intel Xeon", "3", "5", "2", "9", "6", "6", "16", "39") in rows
    assert ("`monolithic`", "AMD EPYC", "3", "4", "2", "8", "5", "6", "17", "21") in rows
    assert len(rows) == 6


def test_stored_tables_survive_a_round_trip(tmp_path):
    table = (("task", "share"), [("FetchPush", "3.4 [2.1, 5.4]")])
    write_table(tmp_path / "table.json", table)
    assert read_table(tmp_path / "table.json") == table
