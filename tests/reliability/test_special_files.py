"""FIFOs, devices, folders and huge files in place of a run's files: no hang, one clear error."""

import os
import shutil
import socket
import warnings
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

import mrn
from mrn.analysis.figures import draw_figures
from mrn.analysis.report import write_report
from mrn.analysis.runs import find_runs
from mrn.envs import find_task
from mrn.runs.checkpoint import Checkpoints
from mrn.runs.metrics import read_metrics
from mrn.runs.provenance import read_config
from mrn.sweeps.child import open_log
from mrn.sweeps.suites import find_suite
from mrn.training.trainer import Trainer
from mrn.utils.files import MAX_BYTES, open_regular, read_limited
from mrn.utils.signals import time_limit
from tests.sweeps.helpers import write_run
from tests.training.helpers import metrics, tiny_run


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(path))


def make_sparse(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(8 * 2**30)


KINDS = {
    "FIFO": os.mkfifo,
    "socket": make_socket,
    "folder": Path.mkdir,
    "huge file": make_sparse,
    "link to itself": lambda path: path.symlink_to(path.name),
    "device": lambda path: path.symlink_to("/dev/zero"),
}
WRONG = "not a regular file|is a link to /dev/zero|is too large|Is a directory"


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "run"
    tiny_run(folder)
    return folder


@pytest.fixture
def folder(run, tmp_path, monkeypatch) -> Path:
    """A copy of the run, for a test that must not take longer than 10 seconds."""
    shutil.copytree(run, tmp_path / "run")
    monkeypatch.chdir(tmp_path)  # paths of sockets must be short
    with time_limit(10, "hangs"):
        yield Path("run")


def replace(path: Path, kind: str) -> None:
    path.unlink(missing_ok=True)
    KINDS[kind](path)


@pytest.mark.parametrize("kind", KINDS)
def test_file_of_another_kind_is_an_error(folder, kind):
    replace(Path("file"), kind)
    for read in (open_regular, read_limited):
        if kind != "device":  # rejected in a run folder because it is outside
            with pytest.raises(mrn.UserError, match=WRONG):
                read(Path("file"))
    if kind != "huge file":
        os.rename("file", "seed-1.log")
        with pytest.raises(mrn.UserError, match="not a regular file|Is a directory"):
            open_log(Path("seed-1"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["config.json", "latest.safetensors"])
def test_settings_and_weights(folder, name, kind):
    replace(folder / name, kind)
    with pytest.raises(mrn.UserError, match=name):
        mrn.load(folder) if name.startswith("latest") else tiny_run(folder, resume=True)


@pytest.mark.parametrize("kind", ["FIFO", "socket", "huge file", "link to itself"])
def test_metrics_are_restored_from_the_checkpoint(folder, kind):
    replace(folder / "metrics.csv", kind)
    with pytest.raises(mrn.UserError, match=WRONG):
        read_metrics(folder / "metrics.csv")
    warned = kind != "link to itself"  # which counts as missing
    with pytest.warns(UserWarning, match="metrics.csv is damaged") if warned else nullcontext():
        tiny_run(folder, resume=True)
    assert len(metrics(folder)) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_weights_in_a_file_of_another_kind(folder, kind):
    replace(Path("weights"), kind)
    with pytest.raises(mrn.UserError, match="weights"):
        mrn.load("weights")


@pytest.mark.parametrize("kind", KINDS)
def test_tracking_does_not_prevent_resuming(folder, kind):
    replace(folder / "tracking.json", kind)
    if kind == "device":
        with pytest.raises(mrn.UserError, match="is a link to /dev/zero"):
            tiny_run(folder, resume=True)
    else:
        with pytest.warns(UserWarning, match="the run continues without tracking"):
            tiny_run(folder, resume=True)


@pytest.mark.parametrize("kind", ["FIFO", "socket", "huge file", "link to itself"])
@pytest.mark.parametrize(
    "part", ["checkpoint.json", "complete", "state.safetensors", "replay-", "copy-replay-"]
)
def test_previous_checkpoint_or_copy_is_used(folder, part, kind):
    # The last in alphabetical order belongs to the newest checkpoint.
    file = sorted((folder / "checkpoints").rglob(f"{part}*"))[-1]
    replace(file, kind)
    trainer = Trainer(read_config(folder), find_task("FetchReach", 0.0), torch.device("cpu"))
    with pytest.warns(UserWarning, match="restored from its copy|resuming from 000002-000000"):
        assert Checkpoints(folder).load(trainer) is not None
    assert trainer.epoch == (3 if "replay" in part else 2)


@pytest.mark.parametrize("kind", KINDS)
def test_report_and_figures_skip_the_file_and_show_the_other_runs(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    good = write_run(Path("runs"), [0.5, 0.7], 1)
    for seed, name in enumerate(("config.json", "metrics.csv"), start=2):
        replace(write_run(Path("runs"), [0.5, 0.7], seed) / name, kind)
    for name in ("video.mp4", "inspect.png"):
        replace(good / name, kind)
    with time_limit(10, "hangs"), warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        runs = find_runs(Path("runs"))
        page, _ = write_report(Path("runs"), Path("page"))
        draw_figures(Path("runs"), Path("out"))
    assert [run.seed for run in runs if not run.problem] == [1]
    assert {run.seed for run in runs if run.problem} == {2, 3}
    text = page.read_text()
    assert "FetchPush/ddpg-mrn/1" in text
    assert '"source": "data:' not in text
    messages = "\n".join(str(each.message) for each in shown)
    for name in ("config.json", "metrics.csv", "video.mp4", "inspect.png"):
        assert name in messages
        assert name in text


def test_suite_in_a_fifo_is_an_error(tmp_path):
    os.mkfifo(tmp_path / "suite.toml")
    with time_limit(10, "hangs"), pytest.raises(mrn.UserError, match="not a regular file"):
        find_suite(str(tmp_path / "suite.toml"))


def test_size_limit(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 11)
    with pytest.raises(mrn.UserError, match="too large"):
        read_limited(tmp_path / "file", limit=10)
    assert read_limited(tmp_path / "file", limit=11) == b"x" * 11
    make_sparse(tmp_path / "huge")
    with pytest.raises(mrn.UserError, match=f"at most {MAX_BYTES // 2**20} MiB"):
        read_limited(tmp_path / "huge")
