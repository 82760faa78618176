"""Output of a dry run, for given estimates."""

import shutil
from types import SimpleNamespace

import pytest

import mrn
from mrn import cli
from mrn.runs.checkpoint import Checkpoints
from mrn.sweeps import probe
from mrn.sweeps.jobs import plan_jobs
from mrn.sweeps.probe import Estimate, disk, estimate_sweep, makespan
from mrn.sweeps.suites import Suite, find_suite
from tests.sweeps.helpers import write_rows
from tests.training.helpers import TINY

GIB, MIB = 2**30, 2**20


@pytest.fixture
def fake_estimates(monkeypatch):
    """Every run takes an hour, 3 GiB of checkpoints and 1 GiB of weights."""

    def set_free_space(free: float) -> None:
        estimate = Estimate(3600.0, 3 * GIB, GIB)
        monkeypatch.setattr(probe, "probe", lambda jobs, log: dict.fromkeys(jobs, estimate))
        monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))

    return set_free_space


def test_table_has_a_row_per_task(tmp_path, fake_estimates):
    fake_estimates(free=2000 * GIB)
    jobs = plan_jobs(find_suite("paper-main"), tmp_path, 1)
    write_rows(jobs[0].folder, 25)  # FetchReach, finished
    write_rows(jobs[1].folder, 5)
    table, text = estimate_sweep(jobs, 2, False, print)
    rows = list(zip(*(column.cells for column in table.columns), strict=True))
    assert len(rows) == 12
    assert rows[0] == ("FetchReach", "6", "30", "1", "750", "30", "30.0 h", "120.0 GiB")
    assert rows[-1] == ("PenFull", "6", "30", "0", "3000", "0", "30.0 h", "120.0 GiB")
    assert (
        "360 runs with recipe paper: about 15.0 days of compute, 7.5 days with 2 in parallel"
        in text
    )
    assert f"Disk: 1,436.0 GiB more, 2,000.0 GiB free in {tmp_path}" in text
    assert "NOT ENOUGH" not in text


def test_too_small_disk_is_reported_with_the_fix(tmp_path, fake_estimates):
    jobs = plan_jobs(Suite(("FetchReach",), folder="s"), tmp_path / "new folder", 1)
    fake_estimates(free=19.9 * GIB)
    _, text = estimate_sweep(jobs, 2, False, print)
    assert f"20.0 GiB more, 19.9 GiB free in {tmp_path}: NOT ENOUGH SPACE" in text
    assert "--discard-checkpoints, which reduces it to 11.0 GiB" in text
    fake_estimates(free=10 * GIB)
    _, text = estimate_sweep(jobs, 2, False, print)
    assert "NOT ENOUGH SPACE; choose another --runs." in text
    fake_estimates(free=20 * GIB)
    assert "NOT ENOUGH" not in estimate_sweep(jobs, 2, False, print)[1]


def test_replay_files_are_counted_as_often_as_they_are_stored(tmp_path):
    config = mrn.Config.of("FetchReach", **TINY)
    trainer, envs = probe._trainer(config)
    with envs:
        while len(trainer.replay) < trainer.replay.capacity:
            trainer.collect(envs)
            trainer.cycle += 1
    Checkpoints(tmp_path).save(trainer, [])
    stored = sum(f.stat().st_size for f in (tmp_path / "checkpoints").glob("*replay-*"))
    estimated = probe._probe_update(config).replay_bytes * len(trainer.replay)
    assert stored == pytest.approx(estimated, rel=0.1)


def test_disk_counts_existing_and_discarded_files(tmp_path):
    jobs = plan_jobs(Suite(("FetchReach",), seeds=(1, 2, 3), folder="s"), tmp_path, 1)
    write_rows(jobs[0].folder, 25)
    sizes = ((30, 1, 31), (20, 2, 12), (10, 3, 0))  # checkpoints, weights, on disk; in MiB
    estimates = {
        job: Estimate(0.0, *(size * MIB for size in each))
        for job, each in zip(jobs, sizes, strict=True)
    }
    assert disk(estimates, 1, discard=False) == (31 + 22 + 13) * MIB
    assert disk(estimates, 1, discard=False, additional=True) == (0 + 10 + 13) * MIB
    assert disk(estimates, 1, discard=True) == (1 + 2 + 3 + 30) * MIB
    assert disk(estimates, 1, discard=True, additional=True) == (0 + 0 + 3 + 20) * MIB
    assert disk(estimates, None, discard=True, additional=True) == (0 + 0 + 3 + 20 + 10) * MIB


def test_makespan_fills_free_slots(tmp_path):
    jobs = plan_jobs(Suite(("FetchReach",), seeds=(1, 2, 3, 4), folder="s"), tmp_path, 1)
    hours = dict(zip(jobs, (Estimate(s, 0, 0) for s in (5.0, 1.0, 1.0, 4.0)), strict=True))
    assert [makespan(hours, count) for count in (1, 2, 9)] == [11, 6, 5]


def sweep_command(monkeypatch, capsys, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["mrn", "sweep", *arguments])
    try:
        cli.main()
        code = 0
    except SystemExit as end:
        code = end.code
    return code, *capsys.readouterr()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--address=auto"], "--address has no effect with --backend local: add --backend ray"),
        (["--gpus=0.5"], "--gpus has no effect with --backend local: add --backend ray"),
        (["--backend=ray", "--jobs=2"], "--jobs has no effect with --backend ray"),
        (["--runs=/proc/none"], "cannot write to /proc/none/quick: "),
    ],
)
def test_invalid_options_are_one_line_errors(monkeypatch, capsys, options, message):
    code, out, error = sweep_command(monkeypatch, capsys, "quick", *options)
    assert (code, out) == (2, "")
    assert error.startswith(f"error: {message}")
    assert error.count("\n") == 1


def test_dry_run_for_a_cluster_shows_compute_only(monkeypatch, capsys, fake_estimates, tmp_path):
    fake_estimates(free=100 * GIB)
    options = ("quick", "--backend=ray", "--dry-run", f"--runs={tmp_path}")
    code, out, _ = sweep_command(monkeypatch, capsys, *options)
    assert code == 0
    assert "2 runs with recipe paper: about 2.0 h of compute.\n" in out


def test_suggested_command_is_quoted(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("mrn.sweeps.scheduler.run_sweep", lambda *_: None)
    _, out, _ = sweep_command(monkeypatch, capsys, "quick", f"--runs={tmp_path / 'my runs'}")
    assert out == f"Done. View the results: mrn report '{tmp_path}/my runs/quick'\n"
