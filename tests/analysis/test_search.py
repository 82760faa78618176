"""Searching for runs: none vanishes silently, and none counts twice."""

import os
import shutil

import pytest

from mrn.analysis.figures import draw_figures
from mrn.analysis.report import write_report
from mrn.analysis.runs import find_runs
from mrn.analysis.search import search
from tests.sweeps.helpers import write_run


def test_links_to_run_folders_are_followed_once(tmp_path):
    runs = tmp_path / "runs"
    real = write_run(runs, [0.5, 0.7], 1)
    elsewhere = write_run(tmp_path / "disk", [0.5, 0.9], 2)
    linked = real.with_name("seed-2")
    linked.symlink_to(elsewhere)
    for name, target in (("again", linked), ("latest", real), ("here", runs), ("loop", "loop")):
        (runs / name).symlink_to(target)
    found = search(runs)
    assert found.folders == [real, linked]
    assert found.skipped == {}
    assert [run.seed for run in find_runs(runs) if not run.problem] == [1, 2]
    shutil.rmtree(elsewhere)
    assert search(runs).folders == [real]  # dangling links are not folders


def test_linked_folder_of_runs_is_named(tmp_path):
    runs = tmp_path / "runs"
    write_run(runs / "one", [0.5, 0.7], 1)
    write_run(tmp_path / "disk", [0.5, 0.7], 2)
    (runs / "two").symlink_to(tmp_path / "disk")
    (runs / "up").symlink_to(tmp_path)
    (tmp_path / "disk" / "secret.mp4").write_bytes(b"secret")
    message = rf"two: it is a link to {tmp_path / 'disk'}, which is not searched for runs"
    for write, out in ((write_report, "page"), (draw_figures, "figures")):
        with pytest.warns(UserWarning, match=message):
            write(runs, tmp_path / out)
    text = (tmp_path / "page" / "index.html").read_text()
    assert f"two: it is a link to {tmp_path / 'disk'}" in text
    assert "c2VjcmV0" not in text  # "secret" in base64


@pytest.mark.parametrize("damage", ["removed", "folder", "of another run"])
def test_run_without_its_settings_is_named(tmp_path, damage):
    runs = tmp_path / "runs"
    good, victim = (write_run(runs / "suite", [0.5, 0.7], seed) for seed in (1, 2))
    (victim / "config.json").unlink()
    if damage == "folder":
        (victim / "config.json").mkdir()
    elif damage == "of another run":
        shutil.copy(good / "config.json", victim)
    for write, out in ((write_report, "page"), (draw_figures, "figures")):
        with pytest.warns(UserWarning, match=rf"{victim}: .*config\.json"):
            write(runs, tmp_path / out)
    found = find_runs(runs)
    assert [(run.name, bool(run.problem)) for run in found] == [
        ("suite/FetchPush/ddpg-mrn/1", False),
        ("suite/FetchPush/ddpg-mrn/2", True),
    ]


def test_unreadable_folder_is_named(tmp_path, monkeypatch):
    write_run(tmp_path / "runs", [0.5, 0.7], 1)
    sealed = write_run(tmp_path / "runs", [0.5, 0.7], 2)
    scandir = os.scandir

    def deny(path):  # patched, because root has all permissions
        if os.fspath(path) == str(sealed):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr("os.scandir", deny)
    for write, out in ((write_report, "page"), (draw_figures, "figures")):
        with pytest.warns(UserWarning, match=f"{sealed}: cannot read the folder: Permission"):
            write(tmp_path / "runs", tmp_path / out)
    table = (tmp_path / "figures" / "table.md").read_text()
    assert "Not counted: FetchPush/ddpg-mrn/2: cannot read the folder" in table
    assert "cannot read the folder" in (tmp_path / "page" / "index.html").read_text()
