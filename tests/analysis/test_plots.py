"""Learning curves drawn by matplotlib."""

import pytest

from mrn.analysis.plots import draw_curves
from mrn.analysis.runs import find_runs, group
from mrn.utils.errors import UserError
from tests.analysis.helpers import tasks_of
from tests.commands import mrn
from tests.sweeps.helpers import write_run


def test_bands_are_intervals_of_the_mean_within_0_and_1(tmp_path):
    # Two seeds: a quarter of the samples are the lower one twice, so the band spans both. A
    # standard deviation would reach 0.5 + 0.71 and below 0.
    write_run(tmp_path, [0.0, 1.0, 1.0], 1)
    write_run(tmp_path, [1.0, 1.0], 2, epochs=3)
    tasks = group(find_runs(tmp_path))[""]
    figure = draw_curves(tasks, list(tasks), ["ddpg-mrn"])
    (band,) = figure.axes[0].collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.0, 1.0)
    places = band.get_paths()[0].vertices[:, 0]
    assert places.max() == 100_000  # epoch 2; a single seed has no interval
    shared = [line for line in figure.axes[0].lines if line.get_gid() == "shared"]
    assert [line.get_xdata()[0] for line in shared] == [100_000]


def test_legend_of_many_long_names_does_not_cover_the_panels(tmp_path):
    """Thirteen methods, none on both tasks; matplotlib warns if no space is left."""
    critics = ["mrn", "monolithic", "bvn", "dn", "wn", "pqe", "iqe"]
    for place, critic in enumerate(critics + [f"{critic}-released" for critic in critics[:6]]):
        task = "FetchReach" if place % 2 else "FetchPush"
        write_run(tmp_path, [0.5, 1.0], 1, critic=critic, task=task)
    tasks = group(find_runs(tmp_path))[""]
    methods = sorted({method for present in tasks.values() for method in present})
    figure = draw_curves(tasks, list(tasks), methods)
    figure.canvas.draw()
    (legend,) = figure.legends
    top = legend.get_window_extent().ymax
    for panel in figure.axes:
        assert panel.get_window_extent().ymin > top
        assert panel.get_window_extent().height > 1.5 * figure.dpi
    assert legend.get_window_extent().xmin >= 0
    assert legend.get_window_extent().xmax <= figure.bbox.xmax


def test_curves_of_recipes_share_the_x_axis(recipes):
    tasks = dict(tasks_of(recipes))
    figure = draw_curves(tasks, ["FetchPush"], ["ddpg-mrn", "ddpg-mrn+fast"])
    paper, fast, shared = (line.get_xdata() for line in figure.axes[0].lines)
    assert list(paper) == [50_000, 100_000, 150_000]
    assert list(fast) == [12_500 * k for k in range(1, 10)]
    assert list(shared) == [100_000] * 2  # the last epoch that both have finished
    assert figure.axes[0].get_xlabel() == "environment steps"
    figure = draw_curves(tasks, ["FetchPush"], ["ddpg-mrn", "ddpg-mrn+fast"], "episodes")
    paper, fast, shared = (line.get_xdata() for line in figure.axes[0].lines)
    assert list(paper) == [1000, 2000, 3000]
    assert list(fast) == [250 * k for k in range(1, 10)]
    assert list(shared) == [2000] * 2
    assert figure.axes[0].get_xlabel() == "episodes"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["MRN", "MRN (fast)"]


def test_episodes_on_the_x_axis_must_be_known(tmp_path):
    folder = write_run(tmp_path / "runs", [0.1, 0.7], 1)
    figures = mrn("figures", tmp_path / "runs", "-o", tmp_path / "out", "--x=episodes")
    assert figures.returncode == 0, figures.stderr
    csv = tmp_path / "unknown/my_package.envs_MyReach-v0/ddpg-mrn/seed-1.csv"
    csv.parent.mkdir(parents=True)
    csv.write_bytes((folder / "metrics.csv").read_bytes())
    tasks = dict(tasks_of(tmp_path / "unknown"))
    with pytest.raises(UserError, match="the number of episodes per epoch is unknown"):
        draw_curves(tasks, list(tasks), ["ddpg-mrn"], "episodes")
    panel = draw_curves(tasks, list(tasks), ["ddpg-mrn"]).axes[0]
    assert list(panel.lines[0].get_xdata()) == [50_000, 100_000]
