"""Methods are compared over shared epochs, and ranked only if the runs allow it."""

import csv
import io
import itertools
import math

import numpy as np
import pytest

from mrn.analysis.figures import draw_figures
from mrn.analysis.plots import draw_curves
from mrn.analysis.ranking import MEASURES, best_rows, pairwise, rankable
from mrn.analysis.runs import find_runs, group
from mrn.analysis.summary import rows_of_choices, summarize
from mrn.analysis.tables import as_csv, format_cost, interval_label, markdown
from tests.sweeps.helpers import write_run

LONG = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
SHORT = [0.1, 0.3, 0.5]


def summary_of(root):
    return summarize(group(find_runs(root))[""])


def rows_of(root):
    return {row.method: row for row in summary_of(root).rows}


@pytest.fixture
def unequal(tmp_path):
    """One method trained for 6 epochs, one for 3, both finished; two seeds each."""
    for seed in (1, 2):
        write_run(tmp_path, LONG, seed)
        write_run(tmp_path, SHORT, seed, critic="bvn")
    return tmp_path


def test_longer_training_is_no_advantage(unequal):
    rows = rows_of(unequal)
    longer, shorter = rows["ddpg-mrn"], rows["ddpg-bvn"]
    assert (longer.epochs, longer.available, longer.planned) == (3, 6, 6)
    assert longer.success.value == pytest.approx(0.4)
    assert longer.area.value == pytest.approx(0.2)
    assert shorter.success.value == pytest.approx(0.5)
    assert shorter.best
    assert not longer.best
    (_, other) = summary_of(unequal).aggregates
    assert other.method == "ddpg-bvn"
    assert other.improvement.value == 0.0  # of mrn over bvn, over the 3 epochs that both have
    assert other.success.value == pytest.approx(0.5)


def test_thresholds_use_whole_runs(unequal):
    rows = rows_of(unequal)
    # MRN reaches 50% in epoch 4, after the compared epochs; BVN in epoch 3, and never 90%.
    assert rows["ddpg-mrn"].epochs_to == (4, 6)
    assert format_cost(rows["ddpg-mrn"], 0) == "4,000"
    assert format_cost(rows["ddpg-bvn"], 0) == "3,000"
    assert format_cost(rows["ddpg-bvn"], 1) == "never"
    table = markdown(summary_of(unequal))
    assert "| MRN | 2 | 3 of 6 |" in table
    note = (
        "FetchPush: compared over the first 3 epochs, which all methods finished (MRN: 6; BVN: 3)."
    )
    assert note in table


def test_every_selection_of_methods_has_rows(unequal):
    tasks = group(find_runs(unequal))[""]
    found = {(row.method, row.epochs): row for row in rows_of_choices(*next(iter(tasks.items())))}
    assert set(found) == {("ddpg-mrn", 3), ("ddpg-mrn", 6), ("ddpg-bvn", 3)}
    assert found["ddpg-mrn", 6].success.value == 1.0
    assert format_cost(found["ddpg-mrn", 6], 1) == "6,000"


def test_unfinished_seeds_have_not_reached_the_threshold_yet(tmp_path):
    write_run(tmp_path, [0.1, 0.6], 1, epochs=9)
    write_run(tmp_path, [0.1, 0.2], 2, epochs=9)
    write_run(tmp_path, [0.1, 0.2], 3, epochs=9)
    row = rows_of(tmp_path)["ddpg-mrn"]
    assert format_cost(row, 0) == "not yet (1 of 3 did)"
    assert format_cost(row, 1) == "not yet"


def test_thresholds_of_an_unknown_task_are_in_epochs(tmp_path):
    folder = write_run(tmp_path / "runs", [0.1, 0.7, 1.0], 1)
    copy = tmp_path / "alone/my_package.envs_MyReach-v0/ddpg-mrn/seed-1.csv"
    copy.parent.mkdir(parents=True)
    copy.write_bytes((folder / "metrics.csv").read_bytes())
    row = rows_of(tmp_path / "alone")["ddpg-mrn"]
    assert math.isnan(row.episodes_to[0])
    assert (format_cost(row, 0), format_cost(row, 1)) == ("epoch 2", "epoch 3")
    assert "| epoch 2 | epoch 3 |" in markdown(summary_of(tmp_path / "alone"))


def test_single_seed_is_not_ranked(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path, [0.5, 0.9], seed)
    write_run(tmp_path, [0.1, 0.2], 1, critic="bvn")
    summary = summary_of(tmp_path)
    assert not any(row.best for row in summary.rows)
    assert [each.improvement for each in summary.aggregates] == [None, None]
    write_run(tmp_path, [0.1, 0.3], 2, critic="bvn")
    summary = summary_of(tmp_path)
    assert [row.method for row in summary.rows if row.best] == ["ddpg-mrn"]
    assert summary.aggregates[1].improvement.value == 1.0


def test_probability_of_improvement_per_task(tmp_path):
    for seed, (ours, theirs) in enumerate([(0.2, 0.1), (0.4, 0.4), (0.6, 0.5)]):
        write_run(tmp_path, [ours] * 2, seed)
        write_run(tmp_path, [theirs] * 2, seed, critic="bvn")
        write_run(tmp_path, [0.9], seed, critic="bvn", task="FetchReach")
    rows = {(row.task, row.method): row for row in summary_of(tmp_path).rows}
    assert rows["FetchPush", "ddpg-mrn"].improvement is None
    # Of nine pairs, 0.2 wins one, 0.4 wins one and ties one, 0.6 wins three.
    better = rows["FetchPush", "ddpg-bvn"].improvement
    assert better.value == pytest.approx(5.5 / 9)
    assert better.low < better.value < better.high
    assert rows["FetchReach", "ddpg-bvn"].improvement is None  # MRN has no run there
    table = markdown(summary_of(tmp_path))
    assert "| P(MRN is better) |" in table
    (line,) = (line for line in table.splitlines() if line.startswith("| FetchPush | BVN |"))
    assert f"| 61.1% [{100 * better.low:.1f}, {100 * better.high:.1f}] |" in line
    (line,) = (line for line in table.splitlines() if line.startswith("| FetchReach | BVN |"))
    assert line.endswith("|  |")
    written = list(csv.DictReader(io.StringIO(as_csv(summary_of(tmp_path)))))
    assert [row["improvement"] for row in written].count("nan") == 2
    assert f"{better.high}" in {row["improvement_high"] for row in written}


def test_critic_is_compared_with_mrn_of_the_same_recipe(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path, [0.1] * 2, seed)
        write_run(tmp_path, [0.9] * 8, seed, recipe="fast")
        write_run(tmp_path, [0.5] * 8, seed, recipe="fast", critic="bvn")
        write_run(tmp_path, [0.5] * 8, seed, recipe="fast", critic="bvn", variant="mine")
    rows = rows_of(tmp_path)
    better = {name: row.improvement.value for name, row in rows.items() if row.improvement}
    assert better == {"ddpg-bvn+fast": 1}  # compared with mrn+fast; there is no mrn+fast+mine
    assert markdown(summary_of(tmp_path)).count("| 100.0% [100.0, 100.0] |") == 1


def test_critic_is_compared_with_mrn_of_the_same_recipe_across_tasks(tmp_path):
    for seed, task in itertools.product((1, 2), ("FetchPush", "FetchReach")):
        write_run(tmp_path, [0.1] * 2, seed, task=task)
        write_run(tmp_path, [0.9] * 8, seed, task=task, recipe="fast")
        write_run(tmp_path, [0.5] * 8, seed, task=task, recipe="fast", critic="bvn")
        write_run(tmp_path, [0.5] * 2, seed, task=task, critic="mine")
    summary = summary_of(tmp_path)
    better = {each.method: each.improvement for each in summary.aggregates}
    assert {name: value and value.value for name, value in better.items()} == {
        "ddpg-mrn": None,
        "ddpg-mrn+fast": None,
        "ddpg-bvn+fast": 1,
        "ddpg-mine": 0,
    }
    assert "P(MRN is better) |\n" in markdown(summary).partition("across 2 tasks")[2]


def test_stopped_runs_are_finished_and_not_ranked(tmp_path):
    """The first run to stop ends the comparison, at the success it stopped for."""
    for seed, curve in enumerate([[0.95], [0.1, 0.5, 0.95]]):
        write_run(tmp_path, curve, seed, epochs=9, stop_at=0.9)
        write_run(tmp_path, [0.1, 0.92], seed, epochs=9, stop_at=0.9, critic="bvn")
    rows = rows_of(tmp_path)
    assert rows["ddpg-mrn"].epochs_to == (1.5, 2)
    assert format_cost(rows["ddpg-mrn"], 1) == format_cost(rows["ddpg-bvn"], 1) == "2,000"
    assert all(row.complete for row in rows.values())
    assert not any(row.best or row.improvement for row in rows.values())
    assert "runs stopped early at `stop_at`" in markdown(summary_of(tmp_path))
    # Reaching stop_at in the last epoch is not stopping early.
    for seed in (1, 2):
        write_run(tmp_path / "last", [0.1, 0.2, 0.95], seed, stop_at=0.9)
        write_run(tmp_path / "last", [0.1, 0.2, 0.3], seed, stop_at=0.9, critic="bvn")
        write_run(tmp_path / "low", [0.1, 0.6], seed, stop_at=0.6, epochs=9)
    assert [row.best for row in rows_of(tmp_path / "last").values()] == [True, False]
    assert format_cost(rows_of(tmp_path / "low")["ddpg-mrn"], 1) == "unknown"


def test_stopped_method_does_not_prevent_comparing_others(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path, [0.5, 0.9], seed)
        write_run(tmp_path, [0.1, 0.2], seed, critic="bvn")
        write_run(tmp_path, [0.1, 0.95], seed, critic="iqe", epochs=9, stop_at=0.9)
    rows = rows_of(tmp_path)
    assert not any(row.best for row in rows.values())
    assert rows["ddpg-bvn"].improvement.value == 1
    assert rows["ddpg-iqe"].improvement is None
    assert [row.stopped for row in rows.values()] == [False, False, True]
    assert summary_of(tmp_path).tasks == ()


def test_method_with_a_seed_that_just_started_is_incomplete(tmp_path):
    for seed, task in itertools.product((1, 2), ("FetchPush", "FetchReach")):
        write_run(tmp_path, [0.5, 0.6], seed, task=task)
        write_run(tmp_path, [0.5, 0.4], seed, task=task, critic="bvn")
    write_run(tmp_path, [], 3, critic="bvn", epochs=2)
    runs = find_runs(tmp_path)
    found = summarize(group(runs)[""], [run for run in runs if run.problem])
    assert found.tasks == ("FetchReach",)
    assert [row.complete for row in found.rows] == [True, True, True, False]
    assert format_cost(found.rows[-1], 1) == "not yet"
    with pytest.warns(UserWarning, match="not drawn: 1 because no epoch is finished yet"):
        draw_figures(tmp_path, tmp_path / "out")
    assert "| never | not yet |" not in (tmp_path / "out/table.md").read_text()
    assert not (tmp_path / "out/aggregate.png").exists()


def test_unaligned_epochs_warn_and_are_not_ranked(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path, [0.5, 0.9], seed)
        write_run(tmp_path, [0.1, 0.2], seed, critic="bvn", variant="cycles=30", cycles=30)
    summary = summary_of(tmp_path)
    assert not any(row.best or row.improvement for row in summary.rows)
    (warning,) = summary.warnings
    assert "epochs differ in length and do not align yet" in warning
    assert summary.tasks == ()  # nor across tasks
    for seed in (1, 2):  # 3 epochs of 1,000 episodes equal 5 of 600
        write_run(tmp_path / "aligned", [0.5, 0.9, 0.9], seed)
        write_run(
            tmp_path / "aligned", [0.1] * 5, seed, critic="bvn", variant="cycles=30", cycles=30
        )
    aligned = summary_of(tmp_path / "aligned")
    assert [row.best for row in aligned.rows] == [True, False]
    assert aligned.warnings == ()


def test_tied_methods_are_both_best(tmp_path):
    # 0.1 + 0.7 and 0.4 + 0.4, halved, differ as floating-point numbers.
    assert np.mean([0.1, 0.7]) != np.mean([0.4, 0.4])
    for seed, (one, other) in enumerate([(0.1, 0.4), (0.7, 0.4)]):
        write_run(tmp_path, [one], seed)
        write_run(tmp_path, [other], seed, critic="bvn")
        write_run(tmp_path, [0.3], seed, critic="dn")
    best = [method for method, row in rows_of(tmp_path).items() if row.best]
    assert best == ["ddpg-mrn", "ddpg-bvn"]


def test_tied_runs_count_half(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path, [0.1, 0.7], seed)
        write_run(tmp_path, [0.4, 0.4], seed, critic="bvn")
    assert rows_of(tmp_path)["ddpg-bvn"].improvement == (0.5, 0.5, 0.5)


def test_single_seed_has_a_wilson_interval(tmp_path):
    write_run(tmp_path, [0.5, 1.0], 1, eval_episodes=10)
    row = rows_of(tmp_path)["ddpg-mrn"]
    assert math.isnan(row.success.low)  # no interval over seeds
    assert row.wilson.low == pytest.approx(0.7225, abs=1e-4)  # 10 / (10 + 1.96^2)
    table = markdown(summary_of(tmp_path))
    assert "| 100.0% (72.2 to 100.0) |" in table
    assert "95% Wilson interval, 1 seed" in table
    assert "bootstrap" not in table
    write_run(tmp_path, [0.5, 0.8], 2, eval_episodes=10)
    assert rows_of(tmp_path)["ddpg-mrn"].wilson is None
    table = markdown(summary_of(tmp_path))
    assert "| 90.0% [80.0, 100.0] |" in table
    assert "95% bootstrap interval, 2 seeds" in table
    assert "Wilson" not in table


def test_different_settings_of_methods_are_named(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path / "runs", [0.5], seed, threads=seed)
        write_run(tmp_path / "runs", [0.4], seed, critic="bvn", variant="big", batch_size=2048)
    warning = "FetchPush: methods differ in batch_size (MRN: 1024; BVN, big: 2048)"
    assert summary_of(tmp_path / "runs").warnings == (warning,)
    with pytest.warns(UserWarning, match=r"batch_size \(MRN: 1024; BVN, big: 2048\)"):
        draw_figures(tmp_path / "runs", tmp_path / "out")
    assert f"Warning: {warning}." in (tmp_path / "out/table.md").read_text()


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


@pytest.fixture
def recipes(tmp_path):
    """Epochs of 1,000 episodes in one recipe and 250 in the other; two seeds each."""
    for seed in (1, 2):
        write_run(tmp_path, SHORT, seed)
        write_run(tmp_path, [k / 10 for k in range(9)], seed, recipe="fast")
    return tmp_path


def test_recipes_are_compared_after_equal_numbers_of_episodes(recipes):
    rows = rows_of(recipes)
    paper, fast = rows["ddpg-mrn"], rows["ddpg-mrn+fast"]
    assert (paper.stride, fast.stride) == (1, 4)
    # The fourth and eighth of the 9 epochs of fast end with an epoch of the paper's recipe.
    assert (paper.epochs, paper.available, paper.planned) == (2, 3, 3)
    assert (fast.epochs, fast.available, fast.planned) == (2, 2, 2)
    assert fast.success.value == pytest.approx(0.7)
    assert fast.area.value == pytest.approx((0.3 + 0.7) / 2)
    assert paper.success.value == pytest.approx(0.3)
    # By its own evaluations: the sixth, after 250 episodes each, is the first at 50%.
    assert fast.episodes_to == (1500.0, math.inf)
    assert fast.epochs_to == (6.0, math.inf)
    assert format_cost(fast, 1) == "never"  # finished, although the ninth epoch is not compared
    assert fast.best
    table = markdown(summary_of(recipes))
    assert "one epoch in this table has as many episodes as 4 epochs of MRN (fast)." in table
    assert "the first 2 epochs, which all methods finished (MRN: 3; MRN (fast): 2)" in table
    assert "Warning" not in table
    assert [
        (row.method, row.epochs) for row in rows_of_choices(*next(iter(tasks_of(recipes))))
    ] == [
        ("ddpg-mrn", 2),
        ("ddpg-mrn+fast", 2),
        ("ddpg-mrn", 3),
    ]


def test_deviations_from_a_recipe_warn(tmp_path):
    write_run(tmp_path, [0.1] * 4, 1, recipe="fast")
    write_run(tmp_path, [0.1] * 4, 2, recipe="fast", target_update_interval=0, redraws=0)
    write_run(tmp_path, SHORT, 1)
    write_run(tmp_path, SHORT, 1, critic="bvn", action_penalty=0.3)
    within, between = summary_of(tmp_path).warnings
    assert within == "FetchPush, MRN (fast): seeds differ in redraws, target_update_interval"
    usual = "as in its recipe"
    values = f"action_penalty (MRN: {usual}; MRN (fast): {usual}; BVN: 0.3)"
    assert between == f"FetchPush: methods differ in {values}"


def test_equal_values_from_recipe_and_user_are_no_difference(tmp_path):
    write_run(tmp_path, [0.1, 0.2], 1)  # 50 cycles
    write_run(tmp_path, [0.1, 0.2], 1, recipe="fast", cycles=50)
    assert summary_of(tmp_path).warnings == ()


def tasks_of(root):
    return group(find_runs(root))[""].items()


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


def test_runs_before_the_first_common_epoch_are_left_out(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path, SHORT, seed)
        write_run(tmp_path, [0.1] * 4, seed, recipe="fast")
    write_run(tmp_path, [0.9, 0.9], 3, recipe="fast", epochs=4)
    summary = summary_of(tmp_path)
    assert {row.method: (row.stride, row.seeds) for row in summary.rows} == {
        "ddpg-mrn": (1, (1, 2)),
        "ddpg-mrn+fast": (4, (1, 2)),
    }
    assert summary.rows[1].success.value == pytest.approx(0.1)
    assert not summary.rows[1].complete  # the third seed is still training
    assert summary.tasks == ()
    tasks = dict(tasks_of(tmp_path))
    panel = draw_curves(tasks, ["FetchPush"], ["ddpg-mrn", "ddpg-mrn+fast"]).axes[0]
    assert [line.get_xdata()[0] for line in panel.lines if line.get_gid() == "shared"] == [50_000]
    assert summary.warnings == (
        "FetchPush: epochs differ in length; runs before the first common epoch are left out: "
        "MRN (fast) seed 3",
    )
    # Epochs of 750 and 1,000 episodes align every 3,000.
    for seed in (1, 2):
        write_run(tmp_path / "other", [0.1] * 4, seed, recipe="fast", num_envs=30)
        write_run(tmp_path / "other", [0.2] * 4, seed)
    assert {row.method: row.stride for row in summary_of(tmp_path / "other").rows} == {
        "ddpg-mrn": 3,
        "ddpg-mrn+fast": 4,
    }


def test_named_variants_are_meant_to_differ(tmp_path):
    write_run(tmp_path, [0.5], 1)
    write_run(tmp_path, [0.4], 1, variant="big", batch_size=2048)
    assert summary_of(tmp_path).warnings == ()
    write_run(tmp_path, [0.4], 1, critic="bvn", learning_rate=0.1)
    (warning,) = summary_of(tmp_path).warnings
    assert "learning_rate (MRN: 0.001; MRN, big: 0.001; BVN: 0.1)" in warning
    assert "batch_size" not in warning


def test_renamed_settings_in_grid_labels_are_meant_to_differ(tmp_path):
    write_run(tmp_path, [0.1] * 4, 1, recipe="fast")
    other = {"variant": "target_every=0", "target_update_interval": 0}
    write_run(tmp_path, [0.1] * 4, 1, critic="bvn", recipe="fast", **other)
    assert summary_of(tmp_path).warnings == ()


def test_intervals_are_labeled_as_what_they_are():
    assert interval_label([1, 1]) == "95% Wilson interval, 1 seed"
    assert interval_label([3, 3]) == "95% bootstrap interval, 3 seeds"
    assert interval_label([5, 2, 3]) == "95% bootstrap interval, 2 to 5 seeds"


def test_pairwise_ranking_decides_every_selection(tmp_path):
    """The page ranks any selection of methods by pairs only."""
    curves = {"mrn": [0.5, 0.6], "bvn": [0.6, 0.6], "dn": [0.1, 0.2], "wn": [0.9, 0.95]}
    for seed, (critic, curve) in itertools.product((1, 2), curves.items()):
        stop = {"epochs": 9, "stop_at": 0.9} if critic == "wn" else {}
        write_run(tmp_path, curve, seed, critic=critic, **stop)
    write_run(tmp_path, [0.7, 0.8], 1, critic="iqe")  # a single seed
    for seed in (1, 2):
        write_run(tmp_path, [0.3] * 8, seed, critic="pqe", recipe="fast")
    (place,) = tasks_of(tmp_path)
    rows = [row for row in rows_of_choices(*place) if row.epochs == 2]
    assert len(rows) == 6
    against = {row.method: pairwise(row, rows) for row in rows}
    decided = 0
    for size, measure in itertools.product(range(2, 7), MEASURES):
        for chosen in itertools.combinations(rows, size):
            pairs = [(one, other) for one in chosen for other in chosen if one is not other]
            known = {
                (a.method, b.method): against[a.method][measure].get(b.method) for a, b in pairs
            }
            ranked = None not in known.values()
            assert ranked == rankable(chosen, measure)
            best = [
                row
                for row in chosen
                if ranked and all(won for (one, _), won in known.items() if one == row.method)
            ]
            assert best == best_rows(chosen, measure)
            decided += bool(best)
    assert decided > 20
