"""A forged metrics.csv marks its run as damaged; it neither stops a report nor finishes a run."""

import json
import random
import re
import shutil
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import mrn
from mrn.analysis.report import write_report
from mrn.analysis.runs import find_runs
from mrn.runs.layout import checkpoint_folders
from mrn.runs.provenance import read_config
from mrn.sweeps.jobs import Job, plan_job
from mrn.sweeps.scheduler import Sweep
from tests.reliability.helpers import same_run
from tests.sweeps.helpers import write_run
from tests.training.helpers import metrics, tiny_run

VALUES = (
    "", "0", "-1", "4.25", "1e18", "1e308", "1e400", "nan", "-inf", "0x10", "9" * 400, "1e-320",
    "\u0663", "abc", '"1', "=1+1",
)  # fmt: skip


def forge(file: Path, line: int, column: int, value: str) -> None:
    lines = [each.split(",") for each in file.read_text(encoding="utf-8").splitlines()]
    lines[line][column] = value
    text = "".join(f"{','.join(each)}\n" for each in lines)
    file.write_text(text, encoding="utf-8")


def test_one_forged_value_never_stops_the_report_of_other_runs(tmp_path, count):
    runs = [write_run(tmp_path / "runs", [0.1, 0.4, 0.6], seed) for seed in (1, 2)]
    file, rng, rejected = runs[0] / "metrics.csv", random.Random(0), 0
    original = file.read_text(encoding="utf-8")
    cases = [(line, column, v) for line in (1, 2, 3) for column in range(10) for v in VALUES]
    for case in cases:
        file.write_text(original, encoding="utf-8")
        forge(file, *case)
        forged, intact = find_runs(tmp_path / "runs")
        rejected += bool(forged.problem)
        assert not intact.problem
        if rng.random() < 0.06:  # a page takes longer
            with warnings.catch_warnings(record=True, action="always") as caught:
                page, _ = write_report(tmp_path / "runs", tmp_path / "page")
            assert bool(caught) == bool(forged.problem)
            text = page.read_text(encoding="utf-8")
            assert ("is damaged" in text) == bool(forged.problem)
    count(f"forged metrics: {len(cases)}, {rejected} rejected, the others within the valid range")


@pytest.mark.parametrize("column", ["env_steps", "updates"])
def test_counters_never_decrease(tmp_path, column):
    file = write_run(tmp_path, [0.1, 0.4, 0.6], 1) / "metrics.csv"
    place = file.read_text(encoding="utf-8").splitlines()[0].split(",").index(column)
    forge(file, 2, place, "10000000")
    (run,) = find_runs(tmp_path)
    assert re.search(rf"damaged in line 4: {column} must be at least 1e\+07, got", run.problem)


@pytest.fixture(scope="module")
def three_epochs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("three") / "run"
    tiny_run(folder, epochs=3)
    return folder


@pytest.fixture
def run(three_epochs, tmp_path) -> Path:
    shutil.copytree(three_epochs, tmp_path / "run")
    return tmp_path / "run"


def add_epoch(run: Path) -> None:
    """Append a row to metrics.csv as if the run had trained longer."""
    file = run / "metrics.csv"
    *_, last = file.read_text(encoding="utf-8").splitlines()
    epoch, *rest = last.split(",")
    with open(file, "a", encoding="utf-8") as table:
        table.write(",".join([str(int(epoch) + 1), *rest]) + "\n")


def test_forged_epochs_do_not_finish_a_run(run, tmp_path):
    tiny_run(tmp_path / "whole", epochs=4)
    add_epoch(run)
    assert len(metrics(run)) == 4
    tiny_run(run, epochs=4, resume=True)
    assert same_run(run, tmp_path / "whole")


def test_forged_success_does_not_stop_a_run(run):
    names = (run / "metrics.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    forge(run / "metrics.csv", 2, names.index("success"), "1.0")
    with pytest.warns(UserWarning, match="metrics.csv differs from the checkpoint"):
        tiny_run(run, epochs=4, stop_at=0.99, resume=True)
    assert len(metrics(run)) == 4
    assert float(metrics(run)[1]["success"]) < 0.99


@pytest.fixture
def job(run, tmp_path) -> Job:
    """A run of a sweep whose last of four epochs is forged."""
    config = replace(read_config(run), epochs=4)
    folder = tmp_path / "runs" / config.folder
    shutil.copytree(run, folder)
    about = json.loads((folder / "config.json").read_text())
    about["config"]["epochs"] = 4
    (folder / "config.json").write_text(json.dumps(about))
    add_epoch(folder)
    return plan_job(config, tmp_path / "runs", 1, "")


def test_forged_epochs_do_not_finish_a_run_of_a_sweep(job, tmp_path):
    assert job.epochs_done == 4
    work = Sweep([job], None, None, discard=True)
    assert work.waiting == [job]
    work._discard_checkpoints(job)
    assert checkpoint_folders(job.folder)
    tiny_run(tmp_path / "whole", epochs=4)
    tiny_run(job.folder, epochs=4, resume=True)
    assert job.finished
    assert same_run(job.folder, tmp_path / "whole")
    shutil.rmtree(job.folder / "checkpoints")
    assert job.finished
    add_epoch(job.folder)
    with pytest.raises(mrn.UserError, match="has 5 epochs, but the weights are of epoch 4"):
        _ = job.finished


def test_forged_epochs_do_not_finish_a_run_in_a_report(job, tmp_path):
    (found,) = find_runs(tmp_path / "runs")
    assert not found.problem
    assert not found.finished
    assert not found.is_final
    shutil.rmtree(job.folder / "checkpoints")
    (found,) = find_runs(tmp_path / "runs")
    assert re.search("has 4 epochs, but the weights are of epoch 3", found.problem)


@pytest.mark.parametrize("column", ["success", "steps_to_success", "critic_loss", "update_seconds"])
def test_report_compares_metrics_with_the_checkpoint(run, column):
    (found,) = find_runs(run)
    assert found.finished
    names = (run / "metrics.csv").read_text().splitlines()[0].split(",")
    forge(run / "metrics.csv", 2, names.index(column), "0.875")
    (found,) = find_runs(run)
    assert re.search(
        r"metrics.csv is damaged: it differs from .*/000004-000000; mrn resume rest", found.problem
    )
    with pytest.warns(UserWarning, match="metrics.csv differs from the checkpoint"):
        tiny_run(run, epochs=3, resume=True)
    (found,) = find_runs(run)
    assert not found.problem


def test_report_compares_the_number_of_epochs_and_the_settings_with_the_checkpoint(run):
    config, metrics_file = run / "config.json", run / "metrics.csv"
    text = config.read_text()
    config.write_text(text.replace('"learning_rate": 0.001', '"learning_rate": 0.002'))
    (found,) = find_runs(run)
    assert re.search(
        "checkpoint .* learning_rate was 0.001, now 0.002. Restore config", found.problem
    )
    config.write_text(text)
    lines = metrics_file.read_text().splitlines(keepends=True)
    metrics_file.write_text("".join(lines[:-1]))
    (found,) = find_runs(run)
    assert "it differs from" in found.problem


def test_forged_epochs_disagree_with_the_weights(run, capsys):
    shutil.rmtree(run / "checkpoints")
    add_epoch(run)
    with pytest.raises(mrn.UserError, match="has 4 epochs, but the weights are of epoch 3"):
        tiny_run(run, epochs=4, resume=True)
    assert mrn.load(run).epoch == 3


def test_damaged_metrics_of_a_stopped_run_do_not_extend_it(run):
    tiny_run(run, epochs=4, stop_at=0.0, resume=True)
    assert len(metrics(run)) == 3
    weights, text = (run / "latest.safetensors").read_bytes(), (run / "metrics.csv").read_text()
    for damage in (text[:-5], text.replace("\n2,", "\n3,")):
        (run / "metrics.csv").write_text(damage)
        with pytest.warns(UserWarning, match="metrics.csv is damaged, unlike the checkpoint"):
            tiny_run(run, epochs=4, stop_at=0.0, resume=True)
        assert (run / "metrics.csv").read_text() == text
        assert (run / "latest.safetensors").read_bytes() == weights


def test_finished_run_rejects_weights_of_another_seed(run, tmp_path):
    tiny_run(tmp_path / "other", seed=7, epochs=1)
    shutil.copy(tmp_path / "other" / "latest.safetensors", run)
    for load in (lambda: mrn.load(run), lambda: tiny_run(run, epochs=3, resume=True)):
        with pytest.raises(mrn.UserError, match="has different settings: seed was 100, now 7"):
            load()


def test_weights_with_nan_are_rejected(run):
    agent = mrn.load(run)
    next(agent.algorithm.actor.parameters()).data[0] = float("nan")
    agent.save(run / "nan.safetensors")
    with pytest.raises(mrn.UserError, match="actor.* contains a non-finite number"):
        mrn.load(run / "nan.safetensors")
