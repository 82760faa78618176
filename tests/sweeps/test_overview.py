"""Progress display of a sweep."""

import io

from rich.console import Console
from rich.live import Live

from mrn.runs.layout import LOCK, METRICS
from mrn.runs.metrics import read_metrics
from mrn.sweeps import jobs as jobs_module
from mrn.sweeps.jobs import plan_jobs
from mrn.sweeps.overview import Overview
from mrn.sweeps.suites import Suite
from tests.sweeps.helpers import SUITE, write_rows


def test_only_changed_metrics_are_read_again(tmp_path, monkeypatch):
    seeds = tuple(range(30))
    jobs = plan_jobs(Suite(("FetchReach",), ("mrn", "bvn"), seeds=seeds, folder="s"), tmp_path, 1)
    for job in jobs:
        write_rows(job.folder, 3)
    reads = []
    monkeypatch.setattr(jobs_module, "read_metrics", lambda f: reads.append(f) or read_metrics(f))
    overview = Overview()
    overview.console = Console(file=io.StringIO(), force_terminal=True, width=100)
    overview.live = Live(console=overview.console, auto_refresh=False)
    overview.begin(jobs, jobs)
    assert len(reads) == len(jobs) == 60
    running = jobs[:2]
    for job in running:
        (job.folder / LOCK).touch()
    for _ in range(20):
        overview.refresh(running, 58)
    assert len(reads) == 60
    write_rows(running[1].folder, 4)
    for _ in range(20):
        overview.refresh(running, 58)
    assert reads[60:] == [running[1].folder / METRICS]
    shown = overview.live.renderable.renderables[0]
    assert list(shown.columns[1].cells) == ["3/25", "4/25"]
    assert overview.epochs[running[1]] == 4


def test_time_left_follows_the_running_epochs(tmp_path, monkeypatch):
    jobs = plan_jobs(SUITE, tmp_path, 1)
    overview = Overview()
    overview.console = Console(file=io.StringIO(), force_terminal=True)
    overview.begin(jobs, jobs)
    assert overview._time_left() == "-"
    clock = overview.started_at
    monkeypatch.setattr("mrn.sweeps.overview.time.perf_counter", lambda: clock + 10)
    write_rows(jobs[0].folder, 1)
    (jobs[0].folder / LOCK).touch()
    overview.refresh(jobs[:1], 1)
    assert overview._time_left() == "30 s"  # 1 epoch in 10 s, 3 left
    overview.done(jobs[0])
    assert overview._time_left() == "10 s"
