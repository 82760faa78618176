"""Links in a run folder from someone else: nothing outside of it is changed or shown."""

import os
import shutil
from pathlib import Path

import pytest

import mrn
from mrn.analysis.figures import draw_figures
from mrn.analysis.report import write_report
from mrn.runs.run_dir import RunDir
from mrn.sweeps.child import open_log
from mrn.utils.files import write_atomically
from tests.sweeps.helpers import write_run
from tests.training.helpers import metrics, tiny_run

PLACES = (
    ".lock",
    ".config.json.new",
    ".metrics.csv.0123456789abcdef.new",
    "config.json",
    "metrics.csv",
    "latest.safetensors",
    "best.safetensors",
    "tracking.json",
    "inspect.json",
    "wandb",
    "events",
    "events/events.out.tfevents.0000000001",
    "checkpoints",
    "checkpoints/.new",
    "checkpoints/.state.new",
    "checkpoints/000002-000000",
    "checkpoints/000002-000000/state.safetensors",
    "checkpoints/replay-000000000000.safetensors",
    "checkpoints/copy-replay-000000000000.safetensors",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "run"
    tiny_run(folder, epochs=1)
    return folder


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def replace_with_link(path: Path, outside: Path) -> None:
    """Move a file or folder away, and link to it; link to a new file if there is none."""
    outside.mkdir()
    target = outside / "target"
    if path.exists():
        shutil.move(path, target)
    else:
        target.write_bytes(b"precious")
    path.symlink_to(target)


@pytest.mark.parametrize("place", PLACES)
def test_link_out_of_a_run_folder_is_rejected(run, tmp_path, place):
    folder, outside = tmp_path / "run", tmp_path / "outside"
    shutil.copytree(run, folder)
    replace_with_link(folder / place, outside)
    before = contents(tmp_path)
    with pytest.raises(mrn.UserError, match=f"{folder / place} is a link to {outside}/target, "):
        tiny_run(folder, resume=True)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("place", [".lock", ".config.json.new", "config.json", "checkpoints"])
def test_link_in_an_empty_folder_is_rejected(tmp_path, place):
    (tmp_path / "run").mkdir()
    replace_with_link(tmp_path / "run" / place, tmp_path / "outside")
    before = contents(tmp_path)
    for resume in (False, True):
        with pytest.raises(mrn.UserError):
            tiny_run(tmp_path / "run", resume=resume)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["latest.safetensors", "config.json", "metrics.csv"])
def test_linked_file_is_not_read_from_outside(run, tmp_path, name):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    replace_with_link(folder / name, tmp_path / "outside")
    with pytest.raises(mrn.UserError, match=f"{name} is a link to .*outside"):
        mrn.load(folder) if name.startswith("latest") else tiny_run(folder, epochs=1, resume=True)


def test_finished_run_with_linked_weights_is_rejected(run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    replace_with_link(folder / "latest.safetensors", tmp_path / "outside")
    with pytest.raises(mrn.UserError, match=r"latest.safetensors is a link to"):
        tiny_run(folder, epochs=1, resume=True)


def test_lock_that_is_a_link_inside_the_folder_changes_no_other_file(run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    for make_link in (os.symlink, os.link):
        make_link(folder / "metrics.csv", folder / ".lock")
        before = contents(folder)
        with pytest.raises(mrn.UserError, match=r"\.lock is .*; remove it"):
            tiny_run(folder, resume=True)
        assert contents(folder) == before
        (folder / ".lock").unlink()


def test_run_folders_that_the_user_reaches_by_links_work(run, tmp_path):
    """Only links inside of a run folder are suspicious."""
    disk = tmp_path / "disk" / "runs"
    shutil.copytree(run, disk / "one")
    (tmp_path / "runs").symlink_to(disk)
    (tmp_path / "mine").symlink_to(disk / "one")
    tiny_run(tmp_path / "runs" / "one", epochs=2, resume=True)
    tiny_run(tmp_path / "mine", epochs=3, resume=True)
    assert len(metrics(disk / "one")) == 3
    mrn.load(tmp_path / "mine")
    (tmp_path / "weights").symlink_to(disk / "one" / "best.safetensors")
    mrn.load(tmp_path / "weights")  # named by the user, too
    (disk / "one" / "best.safetensors").unlink()
    (disk / "one" / "best.safetensors").symlink_to("latest.safetensors")
    mrn.load(tmp_path / "mine", "best")  # a link inside of the folder


def test_written_file_replaces_a_link(tmp_path):
    """As `mrn inspect`, `mrn video` and `mrn export` with force."""
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "video.mp4").symlink_to("precious")
    (tmp_path / ".video.mp4.new").symlink_to("precious")
    write_atomically(tmp_path / "video.mp4", b"video")
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert not (tmp_path / "video.mp4").is_symlink()
    assert (tmp_path / "video.mp4").read_bytes() == b"video"


def test_log_of_a_sweep_is_not_written_through_a_link(tmp_path):
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "seed-1.log").symlink_to("precious")
    with pytest.raises(mrn.UserError, match=r"seed-1.log is not a regular file"):
        open_log(tmp_path / "seed-1")
    (tmp_path / "seed-2.log").hardlink_to(tmp_path / "precious")
    with pytest.raises(mrn.UserError, match=r"seed-2.log is a hard link to another file"):
        open_log(tmp_path / "seed-2")
    assert (tmp_path / "precious").read_bytes() == b"precious"


def test_figures_among_runs_are_not_written_through_a_link(tmp_path):
    folder = write_run(tmp_path / "made", [0.5, 0.7], 1)
    runs, outside = tmp_path / "runs", tmp_path / "outside"
    shutil.move(folder, runs / "custom")
    outside.mkdir()
    (runs / "FetchPush").symlink_to(outside)
    before = contents(tmp_path)
    with pytest.raises(mrn.UserError, match=f"{runs / 'FetchPush'}.* because of a link"):
        draw_figures(runs, runs)
    assert contents(tmp_path) == before


def test_linked_picture_is_not_shown(tmp_path):
    runs = tmp_path / "runs"
    folder = write_run(runs, [0.5, 0.7], 1)
    (tmp_path / "secret").write_bytes(b"secret")
    for name in ("inspect.png", "video.mp4"):
        (folder / name).symlink_to(tmp_path / "secret")
    (folder / "shown.gif").write_bytes(b"GIF89a")
    with pytest.warns(UserWarning, match=r"not shown: .*is a link to .*secret"):
        page, _ = write_report(runs, tmp_path / "page")
    text = page.read_text()
    assert "c2VjcmV0" not in text  # "secret" in base64
    assert text.count("is a link to") == 2
    assert "data:image/gif;base64,R0lGODlh" in text


def test_no_file_of_a_run_is_opened_through_a_link_that_appears_later(tmp_path):
    """Event files have random names and are created exclusively."""
    config = mrn.Config.of("FetchReach", epochs=1)
    spec = mrn.load("zoo:FetchReach").spec
    with RunDir(tmp_path / "run", config, spec) as run_dir:
        run_dir.begin(None)
        row = dict.fromkeys(run_dir.columns, 0.5) | {"epoch": 1, "env_steps": 100}
        run_dir.log(row)
        (event_file,) = (tmp_path / "run" / "events").iterdir()
        size = event_file.stat().st_size
        event_file.unlink()
        (tmp_path / "precious").write_bytes(b"precious")
        event_file.symlink_to(tmp_path / "precious")
        run_dir.log(row | {"epoch": 2})
    assert size > 100
    assert (tmp_path / "precious").read_bytes() == b"precious"
