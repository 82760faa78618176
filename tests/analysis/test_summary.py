"""Methods are compared over shared epochs."""

import csv
import io
import itertools
import math

import pytest

from mrn.analysis.figures import draw_figures
from mrn.analysis.report import write_report
from mrn.analysis.runs import find_runs, group
from mrn.analysis.summary import check_baseline, rows_of_choices, summarize
from mrn.analysis.tables import as_csv, format_cost, interval_label, markdown
from mrn.utils.errors import UserError
from tests.analysis.helpers import SHORT, rows_of, summary_of, tasks_of
from tests.sweeps.helpers import write_run

LONG = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


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
    assert format_cost(row, 0) == "not yet (except 1 of 3)"
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
    assert markdown(summary_of(tmp_path)).count("| 100.0% [12.1, 100.0] |") == 1


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


def test_any_method_can_be_the_baseline(tmp_path):
    grid = "learning_rate=0.002"
    for seed in (1, 2, 3):
        write_run(tmp_path, [0.5] * 2, seed, critic="bvn")
        write_run(tmp_path, [0.6] * 2, seed, critic="bvn", variant=grid, learning_rate=0.002)
        write_run(tmp_path, [0.7] * 2, seed, critic="iqe")
    assert not any(row.improvement for row in summary_of(tmp_path).rows)  # no MRN
    runs = find_runs(tmp_path)
    baseline = f"ddpg-bvn+{grid}"
    check_baseline(runs, baseline)
    summary = summarize(group(runs)[""], baseline=baseline)
    better = {row.method: row.improvement and row.improvement.value for row in summary.rows}
    assert better == {"ddpg-bvn": 1, baseline: None, "ddpg-iqe": 0}
    assert "| P(BVN, learning rate 0.002 is better) |" in markdown(summary)
    with pytest.raises(UserError, match=r"no runs of baseline 'ddpg-mrn'; available: ddpg-bvn, "):
        check_baseline(runs, "ddpg-mrn")
    draw_figures(tmp_path, tmp_path / "out", baseline=baseline)
    assert "P(BVN, learning rate 0.002 is better)" in (tmp_path / "out/table.md").read_text()
    page, _ = write_report(tmp_path, tmp_path / "page", baseline=baseline)
    assert "P(BVN, learning rate 0.002 is better)" in page.read_text()


def test_mean_of_few_runs_is_not_called_interquartile(tmp_path):
    for task, critic in itertools.product(("FetchPush", "FetchReach"), ("mrn", "bvn")):
        write_run(tmp_path, [0.5], 1, task=task, critic=critic)
    assert "\nMean across 2 tasks, which count equally:\n" in markdown(summary_of(tmp_path))
    for task, critic in itertools.product(("FetchPush", "FetchReach"), ("mrn", "bvn")):
        write_run(tmp_path, [0.6], 2, task=task, critic=critic)
    table = markdown(summary_of(tmp_path))
    assert "\nInterquartile mean across 2 tasks, which count equally [95% interval" in table


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


def test_tied_runs_count_half(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path, [0.1, 0.7], seed)
        write_run(tmp_path, [0.4, 0.4], seed, critic="bvn")
    better = rows_of(tmp_path)["ddpg-bvn"].improvement
    assert better.value == 0.5
    assert better.low == pytest.approx(1 - better.high)
    assert better.low < 0.1  # two seeds


def test_single_seed_has_a_wilson_interval(tmp_path):
    write_run(tmp_path, [0.5, 1.0], 1, eval_episodes=10)
    row = rows_of(tmp_path)["ddpg-mrn"]
    assert math.isnan(row.success.low)  # no interval over seeds
    assert row.wilson.low == pytest.approx(0.7225, abs=1e-4)  # 10 / (10 + 1.96^2)
    table = markdown(summary_of(tmp_path))
    assert "| 100.0% (72.2 to 100.0) |" in table
    assert "95% Wilson interval, 1 seed" in table
    assert "Student" not in table
    write_run(tmp_path, [0.5, 0.8], 2, eval_episodes=10)
    assert rows_of(tmp_path)["ddpg-mrn"].wilson is None
    table = markdown(summary_of(tmp_path))
    assert "| 90.0% [0.0, 100.0] |" in table
    assert "95% Student-t interval, 2 seeds" in table
    assert "Wilson" not in table


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


def test_intervals_are_labeled_as_what_they_are():
    assert interval_label([1, 1]) == "95% Wilson interval, 1 seed"
    assert interval_label([3, 3]) == "95% Student-t interval, 3 seeds"
    assert interval_label([5, 2, 3]) == "95% Student-t interval, 2 to 5 seeds"
