"""A real search: `kill -9` loses no finished trial, and two processes share the rest."""

import os
import re
import shlex
import signal
import sys
from pathlib import Path

import mrn
from mrn.config import Config
from mrn.runs.provenance import read_config
from mrn.sweeps.trials import read_trials
from tests.cli.helpers import exit_code
from tests.commands import Command, until
from tests.commands import mrn as command
from tests.sweeps.forks import fork_runs
from tests.sweeps.helpers import SETTINGS, finish
from tests.training.helpers import metrics

EPOCHS = 8
FIXED = {k: v for k, v in SETTINGS.items() if k != "batch_size"} | {"epochs": EPOCHS}
METHOD = "FetchReach/ddpg-mrn+fast+trial-"


def start_search(folder: Path, trials: int) -> Command:
    lines = [f"{name} = {value}" for name, value in FIXED.items()]
    lines.append("learning_rate = { low = 1e-3, high = 1e-2, log = true }")
    lines.append("batch_size = { choices = [32, 64] }")
    (folder / "space.toml").write_text("\n".join(lines))
    options = (f"--trials={trials}", "--seeds=1", "--jobs=1", "--threads=1", "--name=mine")
    words = ("tune", "FetchReach", "--space=space.toml", *options)
    return Command(*words, cwd=folder, prepare=fork_runs)


def run_of(folder: Path, trial: int) -> Path:
    return folder / "runs/mine" / f"{METHOD}{trial:03d}" / "seed-1"


def _state(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_killed_search_is_continued_by_two_processes(tmp_path):
    search, second = start_search(tmp_path, 3), run_of(tmp_path, 1)
    until((second / "metrics.csv").exists, search)
    child = int((second / ".lock").read_text())
    for pid in (search.pid, child):
        os.kill(pid, signal.SIGKILL)
    search.wait(timeout=60)
    assert 1 <= len(metrics(second)) < EPOCHS
    finished = _state(run_of(tmp_path, 0))
    shown = [finish(each) for each in (start_search(tmp_path, 3), start_search(tmp_path, 3))]

    assert _state(run_of(tmp_path, 0)) == finished
    started = re.findall(r"started +FetchReach/\S+trial-(\d+)/seed-1(, resumed)?", "".join(shown))
    assert sorted(started) == [("001", ", resumed"), ("002", "")]
    rows = read_trials(tmp_path / "runs/mine/trials.csv")
    assert sorted(row["trial"] for row in rows) == ["0", "1", "2"]
    assert {row["state"] for row in rows} == {"complete"}
    config = read_config(second)
    settings = {k: v for k, v in vars(config.algo_config).items() if k in ("batch_size",)}
    rate = config.algo_config.learning_rate
    again = tmp_path / "again"
    mrn.train(
        "FetchReach", recipe="fast", seed=1, learning_rate=rate, run_dir=again, progress=False,
        threads=1, **FIXED | settings,
    )  # fmt: skip
    assert metrics(second) == metrics(again)  # bit-identical to an undisturbed run

    # The printed command has the best settings, and the report lists the trials.
    words = shlex.split(re.search(r"^ +(mrn train .*)$", shown[0], re.M)[1])
    best = next(row for row in rows if f"{float(row['success']):.1%}" in shown[0])
    rates = {float(row["learning_rate"]) for row in rows}
    chosen = [float(word.partition("=")[2]) for word in words if word.startswith("--learning-rate")]
    assert set(chosen or [Config("FetchReach").algo_config.learning_rate]) <= rates
    done = command("report", tmp_path / "runs", "--out", tmp_path / "report")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report/index.html").read_text()
    assert '"header": ["trial", "state", "mean success", "evaluations", "learning_rate"' in page
    assert f'["{best["trial"]}", "complete"' in page


def test_missing_optuna_is_one_error(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert exit_code(monkeypatch, "tune", "FetchReach") == 2
    assert capsys.readouterr().err == "error: optuna is missing: pip install 'mrn-rl[tune]'\n"
    assert not list(tmp_path.iterdir())
