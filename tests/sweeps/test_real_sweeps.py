"""Real sweeps: metrics are identical whatever happens to the processes."""

import os
import re
import shutil
import signal
import time
from contextlib import closing
from pathlib import Path

from mrn.runs.lock import RunLock
from tests.commands import MRN, mrn, until
from tests.reliability.helpers import in_a_terminal
from tests.sweeps.helpers import (
    NAMES,
    finish,
    process_in_epoch_2,
    results,
    start_sweep,
    write_suite,
)

FIRST_TWO = NAMES[:2]


def test_finished_runs_are_skipped(undisturbed):
    before = {p: p.stat().st_mtime_ns for p in (undisturbed / "runs").rglob("*")}
    output = finish(start_sweep(undisturbed, "--jobs=2"))
    assert "6 runs, 6 already finished" in output
    assert "started" not in output
    assert {p: p.stat().st_mtime_ns for p in (undisturbed / "runs").rglob("*")} == before


def test_checkpoints_of_previously_finished_runs_are_discarded(undisturbed, tmp_path):
    for name in FIRST_TWO:
        shutil.copytree(undisturbed / "runs/tiny" / name, tmp_path / "runs/tiny" / name)
    with closing(RunLock(tmp_path / "runs/tiny" / FIRST_TWO[1])):  # held by another process
        finish(start_sweep(tmp_path, "--discard-checkpoints", count=2))
    assert [path.parent.name for path in tmp_path.rglob("checkpoints")] == ["seed-1"]
    assert list((tmp_path / "runs/tiny" / FIRST_TWO[1]).glob("checkpoints"))
    assert results(tmp_path, FIRST_TWO) == results(undisturbed, FIRST_TWO)
    # A run that is to train longer than the suite requires keeps its checkpoints.
    settings = tmp_path / "runs/tiny" / FIRST_TWO[1] / "config.json"
    settings.write_text(settings.read_text().replace('"epochs": 3', '"epochs": 9'))
    finish(start_sweep(tmp_path, "--discard-checkpoints", count=2))
    assert list((tmp_path / "runs/tiny" / FIRST_TWO[1]).glob("checkpoints"))


def test_killed_process_is_resumed(undisturbed, tmp_path):
    sweep = start_sweep(tmp_path, "--jobs=2", "--discard-checkpoints", count=2)
    os.kill(until(lambda: process_in_epoch_2(tmp_path)), signal.SIGKILL)
    output = finish(sweep)
    assert len(re.findall(r"lost .* killed by SIGKILL", output)) == 1
    assert re.search(r"started .*, resumed after epoch [12]", output)
    assert results(tmp_path, FIRST_TWO) == results(undisturbed, FIRST_TWO)
    assert not list(tmp_path.rglob("checkpoints"))
    # Without checkpoints a run cannot be trained longer, and must not silently restart.
    write_suite(tmp_path, 2, epochs=4)
    refused = mrn("sweep", tmp_path / "tiny.toml", "--runs", tmp_path / "runs")
    assert refused.returncode == 3
    assert refused.stderr.count("no checkpoint") == 2
    assert results(tmp_path, FIRST_TWO) == results(undisturbed, FIRST_TWO)


def test_restarted_sweep_trains_missing_runs(undisturbed, tmp_path):
    sweep = start_sweep(tmp_path, "--jobs=2", count=3)
    metrics = tmp_path / "runs" / "tiny" / NAMES[0] / "metrics.csv"
    until(lambda: metrics.exists() and len(metrics.read_text().splitlines()) == 4)
    until(lambda: process_in_epoch_2(tmp_path))
    sweep.kill()
    sweep.communicate()
    complete = [name for name, rows in _so_far(tmp_path).items() if len(rows) == 3]
    output = finish(start_sweep(tmp_path, "--jobs=2", count=3))
    assert not any(re.search(rf"started +{name}\b", output) for name in complete)
    assert int(re.search(r"(\d) already finished", output)[1]) >= len(complete) >= 1
    assert results(tmp_path, NAMES[:3]) == results(undisturbed, NAMES[:3])


def _so_far(folder):
    started = [name for name in NAMES[:3] if (folder / "runs/tiny" / name / "metrics.csv").exists()]
    return results(folder, started)


def _increase_niceness():
    os.nice(3)


def test_interrupted_sweep_saves_and_resumes(undisturbed, tmp_path):
    sweep = start_sweep(tmp_path, count=1, prepare=_increase_niceness)
    run = until(lambda: process_in_epoch_2(tmp_path))
    niceness = min(19, os.getpriority(os.PRIO_PROCESS, 0) + 3)
    assert os.getpriority(os.PRIO_PROCESS, run) == niceness
    session = Path(f"/proc/{run}/autogroup")  # Linux with autogroup scheduling
    assert not session.exists() or session.read_text(encoding="utf-8").split()[-2:] == [
        "nice",
        str(niceness),
    ]
    sweep.send_signal(signal.SIGINT)
    assert re.search("SIGINT: saved; .*: the same command", finish(sweep, 130))
    assert not list(tmp_path.rglob(".lock"))
    # A terminal shows a live table.
    code, shown = in_a_terminal(MRN, "sweep", "tiny.toml", "--threads=1", cwd=tmp_path)
    assert code == 0
    assert re.search(rf"{NAMES[0]} .*[12]/3", shown)
    assert re.search(r"0 done, 1 running, 0 waiting; time left: ", shown)
    assert results(tmp_path, NAMES[:1]) == results(undisturbed, NAMES[:1])


def test_failed_run_does_not_stop_others_and_sets_the_exit_code(undisturbed, tmp_path):
    (tmp_path / "runs/tiny/FetchReach/ddpg-mrn").mkdir(parents=True)
    (tmp_path / "runs/tiny" / NAMES[0]).write_text("a file where its folder belongs")
    output = finish(start_sweep(tmp_path, "--jobs=2", count=2), 3)
    assert "1 of 2 runs failed, the others are finished" in output
    assert re.search(rf"failed +{NAMES[0]}: error: cannot .* folder", output)
    assert results(tmp_path, NAMES[1:2]) == results(undisturbed, NAMES[1:2])


def test_sweep_waits_for_a_run_of_another_process(undisturbed, tmp_path):
    folder = tmp_path / "runs/tiny" / NAMES[0]
    folder.mkdir(parents=True)
    other = RunLock(folder)
    sweep = start_sweep(tmp_path, count=1)
    until(lambda: sweep.shown()[0] == "1 runs, 0 already finished\n")
    time.sleep(1)
    assert [path.name for path in folder.iterdir()] == [".lock"]
    assert sweep.shown()[0] == "1 runs, 0 already finished\n"
    other.close()
    assert finish(sweep).count("started") == 1
    assert results(tmp_path, NAMES[:1]) == results(undisturbed, NAMES[:1])


def test_dry_run_estimates_each_task(tmp_path):
    output = mrn("sweep", write_suite(tmp_path), "--dry-run", "--jobs=2", cwd=tmp_path).stdout
    assert re.search(r"FetchReach .* 3 .* 6 .* 0 .* 18 .* 0 .* \d+ (s|min) .* \d+ MiB", output)
    assert re.search(
        r"6 runs with recipe paper: about \d+ (s|min) of compute, \d+ (s|min) with 2 in parallel",
        output,
    )
    assert re.search(rf"Disk: \d+ MiB more, .* free in {tmp_path}", output)
    assert not (tmp_path / "runs").exists()
