"""kill -9 at random moments and at system calls, with all algorithms: resuming is bit-identical."""

import itertools
import json
import os
import random
import shutil
import signal
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from mrn.algorithms import ALGORITHMS
from tests.commands import Command, until
from tests.reliability.helpers import children, same_run
from tests.reliability.hostile.cases import SEED, numbered, shuffled
from tests.reliability.kills import FUNCTIONS, KILLED, CountCalls, KillAt, start_training, train
from tests.training.helpers import TINY

# Three checkpoints, of which the first is removed.
SETTINGS = TINY | {"epochs": 3, "num_envs": 1, "eval_episodes": 1, "buffer_size": 125}
MODES = {
    "envpool": {"engine": "envpool"},
    "gymnasium": {"engine": "gymnasium"},
    "processes": {"engine": "gymnasium", "async_envs": True, "num_envs": 2},
}
MOMENTS = [*FUNCTIONS, "write", "time"]
KILLS = {"envpool": 130, "gymnasium": 20, "processes": 30}
SWEEPS = 20


def cases() -> list[tuple[str, str, str]]:
    """Return mode, algorithm and moment of each kill."""
    modes = shuffled([mode for mode, count in KILLS.items() for _ in range(count)])
    pairs = itertools.cycle(shuffled(list(itertools.product(ALGORITHMS, MOMENTS))))
    return [(mode, *next(pairs)) for mode in modes]


class Whole(NamedTuple):
    """An uninterrupted run, its duration and its calls."""

    folder: Path
    seconds: float
    calls: dict[str, int]
    """Number of calls of each moment; for `write`, the size of the largest file."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a function that trains an uninterrupted run, once per mode and algorithm."""

    @cache
    def reference(mode: str, algo: str) -> Whole:
        root = tmp_path_factory.mktemp("whole")
        start, folder, calls = time.monotonic(), root / "run", root / "calls"
        assert train(folder, CountCalls(calls), algo=algo, **SETTINGS | MODES[mode]) == 0
        seconds = time.monotonic() - start
        largest = max(path.stat().st_size for path in folder.rglob("*"))
        return Whole(folder, seconds, json.loads(calls.read_text()) | {"write": largest})

    return reference


def kill(folder: Path, moment: str, settings: dict, known: Whole, rng: random.Random) -> None:
    """Start a run and kill it."""
    if moment == "time":
        delay, code = rng.uniform(0, known.seconds), 0
        while code != KILLED:  # it may finish earlier than the reference
            shutil.rmtree(folder, ignore_errors=True)
            process = start_training(folder, **settings)
            time.sleep(delay)
            process.kill()
            code, delay = process.wait(timeout=30), delay / 2
        return
    assert known.calls[moment], f"no call of {moment}; adapt FUNCTIONS"
    at = KillAt(moment, rng.randint(1, known.calls[moment]), rng.choice(["before", "after"]))
    assert train(folder, at, **settings) in (KILLED, -signal.SIGXFSZ), at


@numbered(cases(), short=8)
def test_resume_after_a_kill_is_bit_identical(case, rng, tmp_path, whole, tally):
    mode, algo, moment = case
    known, settings = whole(mode, algo), {"algo": algo, **SETTINGS, **MODES[mode]}
    kill(tmp_path / "run", moment, settings, known, rng)
    assert train(tmp_path / "run", **settings) == 0
    assert same_run(known.folder, tmp_path / "run")
    for kind, name in (("mode", mode), ("algorithm", algo), ("moment", moment)):
        tally(f"kills by {kind}, all resumed bit-identically, seed {SEED}", name)
    shutil.rmtree(tmp_path)


def start_sweep(folder: Path, algos: list[str]) -> Command:
    """Start a sweep of one run per algorithm, all at once."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in SETTINGS.items()]
    lines = ['tasks = ["FetchReach"]', 'recipes = ["fast"]', "[settings]", *lines]
    (folder / "suite.toml").write_text("\n".join([f"algos = {algos}", "seeds = [100]", *lines]))
    words = ("--runs", folder / "runs", "--threads=1", f"--jobs={len(algos)}")
    return Command("sweep", folder / "suite.toml", *words)


@numbered([(who,) for who in shuffled(["run", "sweep"] * (SWEEPS // 2))], short=0)
def test_sweep_after_a_kill_is_bit_identical(case, rng, tmp_path, whole, tally):
    (who,) = case
    algos = rng.sample(list(ALGORITHMS), 2)
    known = {algo: whole("envpool", algo) for algo in algos}
    sweep = start_sweep(tmp_path, algos)
    until(lambda: list(tmp_path.glob("runs/suite/*/*/*/config.json")), sweep)
    time.sleep(rng.uniform(0, min(each.seconds for each in known.values()) / 2))
    runs = children(sweep.pid)
    if who == "run" and runs:
        os.kill(rng.choice(runs), signal.SIGKILL)
    else:
        sweep.kill()
        sweep.wait(timeout=30)
        sweep = start_sweep(tmp_path, algos)
    output = "".join(sweep.communicate(timeout=300))
    assert sweep.returncode == 0, output
    for algo in algos:
        (run,) = tmp_path.glob(f"runs/suite/FetchReach/{algo}-*/seed-100")
        assert same_run(known[algo].folder, run)
    tally(f"kills in a sweep, all resumed bit-identically, seed {SEED}", who)
    shutil.rmtree(tmp_path)
