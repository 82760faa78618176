"""Methods are compared over what they share, and nothing is claimed that the runs do not show."""

import csv
import io
import itertools
import math

import numpy as np
import pytest

from mrn.analysis.figures import draw_curves, draw_figures
from mrn.analysis.runs import find_runs, group
from mrn.analysis.summary import rows_of_choices, summarize
from mrn.analysis.tables import as_csv, markdown, show_cost
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


def test_training_for_longer_is_no_advantage(unequal):
    rows = rows_of(unequal)
    longer, shorter = rows["ddpg-mrn"], rows["ddpg-bvn"]
    assert (longer.epochs, longer.own, longer.planned) == (3, 6, 6)
    assert longer.success.value == pytest.approx(0.4)
    assert longer.area.value == pytest.approx(0.2)
    assert shorter.success.value == pytest.approx(0.5)
    assert shorter.best
    assert not longer.best
    (_, other) = summary_of(unequal).aggregates
    assert other.method == "ddpg-bvn"
    assert other.improvement.value == 0.0  # of mrn over bvn, over the 3 epochs that both have
    assert other.success.value == pytest.approx(0.5)


def test_thresholds_are_of_whole_runs(unequal):
    rows = rows_of(unequal)
    # mrn reaches 50 % in epoch 4, after what is compared; bvn in epoch 3, and never 90 %.
    assert rows["ddpg-mrn"].epochs_to == (4, 6)
    assert show_cost(rows["ddpg-mrn"], 0) == "4,000"
    assert show_cost(rows["ddpg-bvn"], 0) == "3,000"
    assert show_cost(rows["ddpg-bvn"], 1) == "never"
    table = markdown(summary_of(unequal))
    assert "| mrn | 2 | 3 of 6 |" in table
    said = "FetchPush: compared over the first 3 epochs, which all methods have (mrn 6, bvn 3)."
    assert said in table


def test_any_choice_of_methods_has_its_figures(unequal):
    tasks = group(find_runs(unequal))[""]
    found = {(row.method, row.epochs): row for row in rows_of_choices(*next(iter(tasks.items())))}
    assert set(found) == {("ddpg-mrn", 3), ("ddpg-mrn", 6), ("ddpg-bvn", 3)}
    assert found["ddpg-mrn", 6].success.value == 1.0
    assert show_cost(found["ddpg-mrn", 6], 1) == "6,000"


def test_an_unfinished_seed_has_not_got_there_yet(tmp_path):
    write_run(tmp_path, [0.1, 0.6], 1, epochs=9)
    write_run(tmp_path, [0.1, 0.2], 2, epochs=9)
    write_run(tmp_path, [0.1, 0.2], 3, epochs=9)
    row = rows_of(tmp_path)["ddpg-mrn"]
    assert show_cost(row, 0) == "not yet (but 1 of 3)"
    assert show_cost(row, 1) == "not yet"


def test_of_an_unknown_task_epochs_are_known(tmp_path):
    folder = write_run(tmp_path / "runs", [0.1, 0.7, 1.0], 1)
    copy = tmp_path / "alone/my_package.envs_MyReach-v0/ddpg-mrn/seed-1.csv"
    copy.parent.mkdir(parents=True)
    copy.write_bytes((folder / "metrics.csv").read_bytes())
    row = rows_of(tmp_path / "alone")["ddpg-mrn"]
    assert math.isnan(row.episodes_to[0])
    assert (show_cost(row, 0), show_cost(row, 1)) == ("epoch 2", "epoch 3")
    assert "| epoch 2 | epoch 3 |" in markdown(summary_of(tmp_path / "alone"))


def test_one_seed_is_neither_best_nor_better(tmp_path):
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


def test_each_task_says_how_likely_mrn_is_better(tmp_path):
    for seed, (ours, theirs) in enumerate([(0.2, 0.1), (0.4, 0.4), (0.6, 0.5)]):
        write_run(tmp_path, [ours] * 2, seed)
        write_run(tmp_path, [theirs] * 2, seed, critic="bvn")
        write_run(tmp_path, [0.9], seed, critic="bvn", task="FetchReach")
    rows = {(row.task, row.method): row for row in summary_of(tmp_path).rows}
    assert rows["FetchPush", "ddpg-mrn"].improvement is None
    # Of nine pairs: 0.2 wins one, 0.4 wins one and is level with one, 0.6 wins three.
    better = rows["FetchPush", "ddpg-bvn"].improvement
    assert better.value == pytest.approx(5.5 / 9)
    assert better.low < better.value < better.high
    assert rows["FetchReach", "ddpg-bvn"].improvement is None  # mrn has no run there
    table = markdown(summary_of(tmp_path))
    assert "| P(critic mrn is better) |" in table
    (line,) = (line for line in table.splitlines() if line.startswith("| FetchPush | bvn |"))
    assert f"| 61.1 % [{100 * better.low:.1f}, {100 * better.high:.1f}] |" in line
    (line,) = (line for line in table.splitlines() if line.startswith("| FetchReach | bvn |"))
    assert line.endswith("|  |")
    written = list(csv.DictReader(io.StringIO(as_csv(summary_of(tmp_path)))))
    assert [row["improvement"] for row in written].count("nan") == 2
    assert f"{better.high}" in {row["improvement_high"] for row in written}


def test_a_critic_is_compared_with_mrn_by_the_same_recipe(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path, [0.1] * 2, seed)
        write_run(tmp_path, [0.9] * 8, seed, recipe="fast")
        write_run(tmp_path, [0.5] * 8, seed, recipe="fast", critic="bvn")
        write_run(tmp_path, [0.5] * 8, seed, recipe="fast", critic="bvn", variant="mine")
    rows = rows_of(tmp_path)
    better = {name: row.improvement.value for name, row in rows.items() if row.improvement}
    assert better == {"ddpg-bvn+fast": 1}  # of mrn+fast; there is no mrn+fast+mine
    assert markdown(summary_of(tmp_path)).count("| 100.0 % [100.0, 100.0] |") == 1


def test_across_tasks_too_a_critic_is_compared_with_mrn_by_the_same_recipe(tmp_path):
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
    assert "P(critic mrn is better) |\n" in markdown(summary).partition("Across 2 tasks")[2]


def test_a_run_that_stopped_is_finished_and_nobody_is_the_best(tmp_path):
    """The soonest ends the comparison, at a success that it ended for."""
    for seed, curve in enumerate([[0.95], [0.1, 0.5, 0.95]]):
        write_run(tmp_path, curve, seed, epochs=9, stop_at=0.9)
        write_run(tmp_path, [0.1, 0.92], seed, epochs=9, stop_at=0.9, critic="bvn")
    rows = rows_of(tmp_path)
    assert rows["ddpg-mrn"].epochs_to == (1.5, 2)
    assert show_cost(rows["ddpg-mrn"], 1) == show_cost(rows["ddpg-bvn"], 1) == "2,000"
    assert all(row.complete for row in rows.values())
    assert not any(row.best or row.improvement for row in rows.values())
    assert "(`stop_at`)" in markdown(summary_of(tmp_path))
    # One that was to stop, and was as good in its last epoch only, has ended as planned.
    for seed in (1, 2):
        write_run(tmp_path / "last", [0.1, 0.2, 0.95], seed, stop_at=0.9)
        write_run(tmp_path / "last", [0.1, 0.2, 0.3], seed, stop_at=0.9, critic="bvn")
        write_run(tmp_path / "low", [0.1, 0.6], seed, stop_at=0.6, epochs=9)
    assert [row.best for row in rows_of(tmp_path / "last").values()] == [True, False]
    assert show_cost(rows_of(tmp_path / "low")["ddpg-mrn"], 1) == "not known"


def test_a_choice_without_the_run_that_stopped_can_be_ranked(tmp_path):
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


def test_a_method_of_which_a_seed_has_just_begun_is_not_finished(tmp_path):
    for seed, task in itertools.product((1, 2), ("FetchPush", "FetchReach")):
        write_run(tmp_path, [0.5, 0.6], seed, task=task)
        write_run(tmp_path, [0.5, 0.4], seed, task=task, critic="bvn")
    write_run(tmp_path, [], 3, critic="bvn", epochs=2)
    runs = find_runs(tmp_path)
    found = summarize(group(runs)[""], [run for run in runs if run.problem])
    assert found.tasks == ("FetchReach",)
    assert [row.complete for row in found.rows] == [True, True, True, False]
    assert show_cost(found.rows[-1], 1) == "not yet"
    with pytest.warns(UserWarning, match="not drawn: 1 in which no epoch is finished"):
        draw_figures(tmp_path, tmp_path / "out")
    assert "| never | not yet |" not in (tmp_path / "out/table.md").read_text()
    assert not (tmp_path / "out/aggregate.png").exists()


def test_epochs_that_never_meet_are_warned_of_and_nobody_is_the_best(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path, [0.5, 0.9], seed)
        write_run(tmp_path, [0.1, 0.2], seed, critic="bvn", variant="cycles=30", cycles=30)
    summary = summary_of(tmp_path)
    assert not any(row.best or row.improvement for row in summary.rows)
    (told,) = summary.warnings
    assert "epochs differ in length and have not met yet" in told
    assert summary.tasks == ()  # nor across tasks
    for seed in (1, 2):  # 3 epochs of 1,000 episodes are 5 of 600
        write_run(tmp_path / "met", [0.5, 0.9, 0.9], seed)
        write_run(tmp_path / "met", [0.1] * 5, seed, critic="bvn", variant="cycles=30", cycles=30)
    met = summary_of(tmp_path / "met")
    assert [row.best for row in met.rows] == [True, False]
    assert met.warnings == ()


def test_those_that_are_level_are_both_best(tmp_path):
    # 0.1 + 0.7 and 0.4 + 0.4, halved, differ as floating-point numbers.
    assert np.mean([0.1, 0.7]) != np.mean([0.4, 0.4])
    for seed, (one, other) in enumerate([(0.1, 0.4), (0.7, 0.4)]):
        write_run(tmp_path, [one], seed)
        write_run(tmp_path, [other], seed, critic="bvn")
        write_run(tmp_path, [0.3], seed, critic="dn")
    best = [method for method, row in rows_of(tmp_path).items() if row.best]
    assert best == ["ddpg-mrn", "ddpg-bvn"]


def test_runs_that_are_level_are_neither_better_nor_worse(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path, [0.1, 0.7], seed)
        write_run(tmp_path, [0.4, 0.4], seed, critic="bvn")
    assert rows_of(tmp_path)["ddpg-bvn"].improvement == (0.5, 0.5, 0.5)


def test_one_seed_has_the_interval_of_its_episodes(tmp_path):
    write_run(tmp_path, [0.5, 1.0], 1, eval_episodes=10)
    row = rows_of(tmp_path)["ddpg-mrn"]
    assert math.isnan(row.success.low)  # over seeds nothing is known
    assert row.counted.low == pytest.approx(0.7225, abs=1e-4)  # 10 / (10 + 1.96^2)
    table = markdown(summary_of(tmp_path))
    assert "| 100.0 % (72.2 to 100.0) |" in table
    assert "95 % Wilson interval" in table
    assert "bootstrap" not in table
    write_run(tmp_path, [0.5, 0.8], 2, eval_episodes=10)
    assert rows_of(tmp_path)["ddpg-mrn"].counted is None
    table = markdown(summary_of(tmp_path))
    assert "| 90.0 % [80.0, 100.0] |" in table
    assert "bootstrap over seeds" in table
    assert "Wilson" not in table


def test_settings_that_differ_between_methods_are_named(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path / "runs", [0.5], seed, threads=seed)
        write_run(tmp_path / "runs", [0.4], seed, critic="bvn", variant="big", batch_size=2048)
    told = "FetchPush: the methods were not trained alike: batch_size (mrn 1024, bvn+big 2048)"
    assert summary_of(tmp_path / "runs").warnings == (told,)
    with pytest.warns(UserWarning, match=r"batch_size \(mrn 1024, bvn\+big 2048\)"):
        draw_figures(tmp_path / "runs", tmp_path / "out")
    assert f"Beware: {told}." in (tmp_path / "out/table.md").read_text()


def test_bands_are_intervals_of_the_mean_and_stay_in_range(tmp_path):
    # Two seeds: in a quarter of the draws both are the lower one, so the band is from one to the
    # other. A standard deviation would reach to 0.5 + 0.71 and below 0.
    write_run(tmp_path, [0.0, 1.0, 1.0], 1)
    write_run(tmp_path, [1.0, 1.0], 2, epochs=3)
    tasks = group(find_runs(tmp_path))[""]
    figure = draw_curves(tasks, list(tasks), ["ddpg-mrn"])
    (band,) = figure.axes[0].collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.0, 1.0)
    places = band.get_paths()[0].vertices[:, 0]
    assert places.max() == 2  # of one seed there is no interval
    shared = [line for line in figure.axes[0].lines if line.get_gid() == "shared"]
    assert [line.get_xdata()[0] for line in shared] == [2]


def test_a_legend_of_many_long_names_leaves_the_panels_their_room(tmp_path):
    """Thirteen methods, of which no task has all: matplotlib would warn where nothing is left."""
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
    """Epochs of 1,000 episodes by one recipe, of 250 by the other; two seeds each."""
    for seed in (1, 2):
        write_run(tmp_path, SHORT, seed)
        write_run(tmp_path, [k / 10 for k in range(9)], seed, recipe="fast")
    return tmp_path


def test_recipes_are_compared_after_equally_many_episodes(recipes):
    rows = rows_of(recipes)
    paper, fast = rows["ddpg-mrn"], rows["ddpg-mrn+fast"]
    assert (paper.stride, fast.stride) == (1, 4)
    # Of the 9 epochs of fast the fourth and the eighth end with an epoch of the paper's.
    assert (paper.epochs, paper.own, paper.planned) == (2, 3, 3)
    assert (fast.epochs, fast.own, fast.planned) == (2, 2, 2)
    assert fast.success.value == pytest.approx(0.7)
    assert fast.area.value == pytest.approx((0.3 + 0.7) / 2)
    assert paper.success.value == pytest.approx(0.3)
    # Of its own evaluations: the sixth, of 250 episodes each, is the first at 50 %.
    assert fast.episodes_to == (1500.0, math.inf)
    assert fast.epochs_to == (6.0, math.inf)
    assert show_cost(fast, 1) == "never"  # it is finished, though the ninth epoch is not compared
    assert fast.best
    table = markdown(summary_of(recipes))
    assert "FetchPush: an epoch here is as many episodes as 4 of mrn+fast." in table
    assert "compared over the first 2 epochs, which all methods have (mrn 3, mrn+fast 2)" in table
    assert "Beware" not in table
    assert [
        (row.method, row.epochs) for row in rows_of_choices(*next(iter(tasks_of(recipes))))
    ] == [
        ("ddpg-mrn", 2),
        ("ddpg-mrn+fast", 2),
        ("ddpg-mrn", 3),
    ]


def test_runs_that_are_not_by_their_recipe_are_warned_of(tmp_path):
    write_run(tmp_path, [0.1] * 4, 1, recipe="fast")
    write_run(tmp_path, [0.1] * 4, 2, recipe="fast", target_update_interval=0, redraws=0)
    write_run(tmp_path, SHORT, 1)
    write_run(tmp_path, SHORT, 1, critic="bvn", action_penalty=0.3)
    within, between = summary_of(tmp_path).warnings
    assert within == "FetchPush, mrn+fast: its runs differ in redraws, target_update_interval"
    usual = "as its recipe has it"
    told = f"action_penalty (mrn {usual}, mrn+fast {usual}, bvn 0.3)"
    assert between == f"FetchPush: the methods were not trained alike: {told}"


def test_a_setting_that_one_run_was_given_and_another_has_by_its_recipe_is_no_difference(tmp_path):
    write_run(tmp_path, [0.1, 0.2], 1)  # of 50 cycles
    write_run(tmp_path, [0.1, 0.2], 1, recipe="fast", cycles=50)
    assert summary_of(tmp_path).warnings == ()


def tasks_of(root):
    return group(find_runs(root))[""].items()


def test_curves_of_recipes_lie_where_their_episodes_are(recipes):
    tasks = dict(tasks_of(recipes))
    figure = draw_curves(tasks, ["FetchPush"], ["ddpg-mrn", "ddpg-mrn+fast"])
    paper, fast, shared = (line.get_xdata() for line in figure.axes[0].lines)
    assert list(paper) == [1, 2, 3]
    assert list(fast) == [k / 4 for k in range(1, 10)]
    assert list(shared) == [2, 2]  # the last that both have whole
    assert figure.axes[0].get_xlabel() == "epochs of 1,000 episodes"


def test_runs_that_are_not_where_epochs_meet_are_left_out_and_named(tmp_path):
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
    assert not summary.rows[1].complete  # there is a third seed to come
    assert summary.tasks == ()
    tasks = dict(tasks_of(tmp_path))
    panel = draw_curves(tasks, ["FetchPush"], ["ddpg-mrn", "ddpg-mrn+fast"]).axes[0]
    assert [line.get_xdata()[0] for line in panel.lines if line.get_gid() == "shared"] == [1]
    assert summary.warnings == (
        "FetchPush: epochs differ in length, and some runs have not got to where they first meet; "
        "left out: mrn+fast seed 3",
    )
    # Epochs of 750 and 1,000 episodes meet every 3,000.
    for seed in (1, 2):
        write_run(tmp_path / "other", [0.1] * 4, seed, recipe="fast", num_envs=30)
        write_run(tmp_path / "other", [0.2] * 4, seed)
    assert {row.method: row.stride for row in summary_of(tmp_path / "other").rows} == {
        "ddpg-mrn": 3,
        "ddpg-mrn+fast": 4,
    }
