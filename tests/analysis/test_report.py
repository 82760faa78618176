"""Figures, tables and reports written about runs."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from mrn.analysis.figures import draw_figures
from mrn.analysis.report import write_report
from mrn.analysis.runs import find_runs, group
from mrn.analysis.summary import summarize
from mrn.analysis.tables import markdown
from mrn.utils.errors import UserError
from tests.commands import Command, mrn, until
from tests.sweeps.helpers import write_run


@pytest.fixture
def runs(tmp_path):
    for seed, success in enumerate([[0.2, 0.4, 0.8], [0.4, 0.6, 1.0]], start=1):
        write_run(tmp_path / "runs/mine", success, seed, "FetchPush")
    for seed in (1, 2):
        write_run(tmp_path / "runs/mine", [0.1, 0.1, 0.3], seed, "FetchPush", critic="bvn")
    write_run(tmp_path / "runs/mine", [0.5, 0.5, 0.5], 1, "FetchReach", critic="bvn")
    return tmp_path / "runs"


def rows(root):
    summary = summarize(group(find_runs(root))["mine"])
    return {(row.task, row.method): row for row in summary.rows}, summary


def test_results_match_hand_calculation(runs):
    by_place, summary = rows(runs)
    row = by_place["FetchPush", "ddpg-mrn"]
    assert row.success.value == pytest.approx(0.9)
    assert row.std == pytest.approx(np.sqrt(0.02))
    assert row.area.value == pytest.approx((1.4 / 3 + 2.0 / 3) / 2)
    # An epoch is 50 cycles of 20 episodes. Seed 1 is at 50% after 3 epochs, seed 2 after 2.
    assert row.episodes_to[0] == 2500
    assert row.reached == (2, 1)
    assert not row.best  # two seeds at 80% and 100%
    assert not by_place["FetchPush", "ddpg-bvn"].best
    assert by_place["FetchPush", "ddpg-bvn"].episodes_to == (np.inf, np.inf)
    # Tasks and methods are in the paper's order; MRN has no run on FetchReach.
    assert list(by_place) == [
        ("FetchReach", "ddpg-bvn"), ("FetchPush", "ddpg-mrn"), ("FetchPush", "ddpg-bvn"),
    ]  # fmt: skip
    assert summary.tasks == ("FetchPush",)
    assert [a.method for a in summary.aggregates] == ["ddpg-mrn", "ddpg-bvn"]
    assert summary.aggregates[1].improvement.value == 1.0


def test_unfinished_method_is_not_aggregated(runs):
    write_run(runs / "mine", [0.9], 3, "FetchPush", critic="pqe", epochs=3)
    by_place, summary = rows(runs)
    row = by_place["FetchPush", "ddpg-pqe"]
    assert (row.epochs, row.planned, row.best) == (1, 3, False)
    assert summary.tasks == ()
    assert "| 1 of 3 |" in markdown(summary)
    note = "the first epoch, which all methods finished (MRN: 3; BVN: 3; PQE: 1 of 3)"
    assert note in markdown(summary)


def test_improvement_panel_names_its_measure(runs):
    from mrn.analysis.plots import draw_aggregate

    panels = draw_aggregate(rows(runs)[1]).axes
    assert panels[-1].get_title() == "P(MRN is better)\nin mean over epochs"
    for critic in ("mrn", "bvn"):
        (runs / f"mine/FetchPush/ddpg-{critic}/seed-2/config.json").unlink()
    panels = draw_aggregate(rows(runs)[1]).axes  # one seed each
    assert [panel.get_title() for panel in panels] == [
        "final success (mean)", "mean over epochs (mean)",
    ]  # fmt: skip


def test_figures_are_reproducible_from_their_csvs(runs, tmp_path):
    written = draw_figures(runs, tmp_path / "one")
    folder = tmp_path / "one/mine"
    names = {path.relative_to(folder).as_posix() for path in written}
    assert {"curves.pdf", "curves.png", "table.md", "table.csv"} <= names
    assert (folder / "curves.pdf").read_bytes().startswith(b"%PDF")
    copy = folder / "FetchPush/ddpg-mrn/seed-2.csv"
    assert copy.read_bytes() == (runs / "mine/FetchPush/ddpg-mrn/seed-2/metrics.csv").read_bytes()
    draw_figures(tmp_path / "one", tmp_path / "two")
    for name in ("table.md", "table.csv", "curves.pdf", "curves.png"):
        assert (folder / name).read_bytes() == (tmp_path / "two/mine" / name).read_bytes()


def test_stale_figure_warns(runs, tmp_path):
    def figures():
        return {
            p.name for p in draw_figures(runs, tmp_path / "out") if p.suffix in (".png", ".pdf")
        }

    assert figures() == {"curves.pdf", "curves.png"}  # no aggregate of a single task
    for seed in (1, 2):
        write_run(runs / "mine", [0.5, 0.5, 0.5], seed, "FetchReach")
    write_run(runs / "mine", [0.5, 0.5, 0.5], 2, "FetchReach", critic="bvn")
    assert figures() == {"curves.pdf", "curves.png", "aggregate.pdf", "aggregate.png"}
    write_run(runs / "mine", [0.5], 1, "FetchReach", critic="pqe", epochs=3)
    with pytest.warns(
        UserWarning, match=r"figures of other runs: .*aggregate.pdf, .*aggregate.png"
    ):
        assert figures() == {"curves.pdf", "curves.png"}  # PQE has not finished any
    assert (tmp_path / "out/mine/aggregate.png").exists()  # it may be the user's


def texts(figure):
    return [text.get_text() for text in figure.findobj(match=lambda a: hasattr(a, "get_text"))]


def test_main_figure_has_12_panels_and_marks_missing_methods(tmp_path):
    from mrn.analysis.figures import _tasks_and_methods
    from mrn.analysis.plots import draw_curves

    for seed in (100, 200):
        write_run(tmp_path / "paper", [0.1, 0.2, 0.3], seed, "FetchPush")
    write_run(tmp_path / "paper", [0.2], 100, "FetchPush", critic="bvn", epochs=3)
    tasks = group(find_runs(tmp_path))["paper"]
    runs = tasks["FetchPush"]["ddpg-mrn"]
    own = tasks | {"My-v0": {"ddpg-iqe": runs, "ddpg-mrn-sym": runs}}  # an ablation
    names, methods = _tasks_and_methods("paper", own)
    assert (names[-1], methods[-1], len(names), len(methods)) == ("My-v0", "ddpg-iqe", 13, 7)
    figure = draw_curves(tasks, *_tasks_and_methods("paper", tasks))
    assert len(figure.axes) == 12
    assert figure.axes[0].get_gridspec().get_geometry() == (3, 4)
    shown = texts(figure)
    assert shown.count("no runs") == 11
    assert "missing: Monolithic; Deep norm; Wide norm;\nPQE" in shown
    assert "FetchPush (1-2 seeds)" in shown
    push = next(axes for axes in figure.axes if axes.get_title().startswith("FetchPush"))
    np.testing.assert_allclose(push.lines[0].get_ydata(), [0.1, 0.2, 0.3])
    figure.draw_without_rendering()
    (missing,) = push.texts  # covers neither curves, axis labels nor the title below
    place = missing.get_window_extent()
    assert place.y1 <= push.xaxis.get_tightbbox().y0
    below = figure.axes[figure.axes.index(push) + 4]
    assert place.y0 >= below.title.get_window_extent().y1


def test_different_settings_of_seeds_are_named(runs, tmp_path):
    write_run(runs / "mine", [0.1, 0.2, 0.3], 3, "FetchPush", batch_size=32)
    page, finished = write_report(runs, tmp_path / "report")
    assert finished
    assert data_of(page)["problems"] == ["mine: FetchPush, MRN: seeds differ in batch_size"]


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.S)[1])


def test_title_is_the_folder_name_or_custom(runs, tmp_path):
    page, _ = write_report(runs, tmp_path / "report")
    assert data_of(page)["title"] == "mrn report: runs"
    page, _ = write_report(runs, tmp_path / "report", title="Push </script> & pull")
    assert data_of(page)["title"] == "Push </script> & pull"


def test_bad_input_raises_clear_errors(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    for command in ("report", "figures"):
        refused = mrn(command, empty, "-o", tmp_path / "out")
        assert refused.returncode == 2
        assert f"error: no runs in {empty}" in refused.stderr
    assert not (tmp_path / "out").exists()
    with pytest.raises(UserError, match="none does not exist"):
        find_runs(tmp_path / "none")
    write_run(tmp_path / "good", [0.1, 0.2])
    (tmp_path / "file").write_text("precious")
    for write in (draw_figures, write_report):
        for place, reason in (("file", "file is a file"), ("file/below", "file is a file")):
            with pytest.raises(UserError, match=f"cannot write to .*{place}: .*{reason}"):
                write(tmp_path / "good", tmp_path / place)
        with pytest.raises(UserError, match="cannot write to /proc/none"):
            write(tmp_path / "good", Path("/proc/none"))
    assert (tmp_path / "file").read_text() == "precious"
    folder = write_run(tmp_path / "begun", [], epochs=3)
    with pytest.raises(UserError, match=f"{folder}: no epoch is finished yet"):
        write_report(tmp_path / "begun", tmp_path / "out")
    folder = write_run(tmp_path / "cut", [0.1, 0.2])
    file = folder / "metrics.csv"
    file.write_text(file.read_text()[:-30])
    with pytest.raises(UserError, match="metrics.csv is damaged in line 3; .*mrn resume"):
        draw_figures(tmp_path / "cut", tmp_path / "out")
    lines = file.read_text()
    file.write_text(lines.replace(",", "\r", 1))
    with pytest.raises(UserError, match="metrics.csv is damaged: new-line character .*mrn resume"):
        draw_figures(tmp_path / "cut", tmp_path / "out")
    file.write_text("epoch,success\n1,2\n")
    with pytest.raises(UserError, match="columns are missing, duplicated or invalid"):
        draw_figures(tmp_path / "cut", tmp_path / "out")
    (folder / "config.json").write_text("{")
    with pytest.raises(UserError, match="config.json is damaged"):
        draw_figures(tmp_path / "cut", tmp_path / "out")


def test_damaged_run_is_listed_with_the_others(runs, tmp_path):
    file = runs / "mine/FetchPush/ddpg-bvn/seed-1/metrics.csv"
    file.write_text(file.read_text()[:-1])
    with pytest.warns(UserWarning, match="not shown: .*its last line is truncated"):
        page, finished = write_report(runs, tmp_path / "report")
    assert finished  # watching would not end otherwise
    assert "its last line is truncated" in data_of(page)["problems"][0]


def test_watching_follows_a_run_until_it_is_finished(tmp_path):
    folder = write_run(tmp_path / "runs", [0.5], epochs=2)
    lines = (folder / "metrics.csv").read_text()
    (folder / "metrics.csv").unlink()
    write_run(tmp_path / "runs", [None, None], 200, eval_episodes=0)  # never evaluated
    watching = Command("report", tmp_path / "runs", "-o", tmp_path, "--watch", "--every=1")
    until(lambda: "no epoch is finished yet" in watching.shown()[0])
    (folder / "metrics.csv").write_text(lines)
    page = tmp_path / "index.html"
    until(page.exists)
    assert '"refresh": 1' in page.read_text()
    (folder / "metrics.csv").write_text(lines + lines.splitlines()[1].replace("1,", "2,", 1) + "\n")
    assert watching.wait(timeout=30) == 0
    assert '"refresh": 0' in page.read_text()
    assert "2 runs, 1 finished" in page.read_text()
    assert [line.split()[0] for line in watching.shown()[0].splitlines()] == ["Waiting:", "Wrote"]
