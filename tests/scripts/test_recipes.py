"""When a task is solved, both recipes side by side, and the ablation."""

import numpy as np
import pytest

from mrn.analysis.runs import find_runs
from mrn.utils.errors import UserError
from scripts import recipes
from scripts.studies import ROOT
from tests.sweeps.helpers import write_run


def test_task_is_solved_when_the_mean_over_seeds_reaches_the_level(tmp_path):
    for seed, success in ((100, [0.5, 0.96, 0.92, 0.8]), (200, [0.7, 0.82, 0.94, 1.0])):
        write_run(tmp_path, success, seed)
    runs = find_runs(tmp_path)
    # After three epochs of 50,000 steps, each a second of rollouts and one of updates; one follows.
    expected = (150_000, 1, pytest.approx(6 / 60), pytest.approx(0.9))
    assert recipes.time_to_level(runs, 0.9) == expected
    assert recipes.time_to_level(runs, 0.95) is None
    write_run(tmp_path, [0.1] * 4, 400)
    _, rows = recipes.solved_table(tmp_path)
    assert [", ".join(row[2:]) for row in rows] == [
        "100, 200, 90%, 150,000, 1, 0.1, 90.0%, 90.0% after 200,000",
        "400, 90%, not reached, , , , 10.0% after 200,000",
    ]
    # The mean is 0.9, but slightly less as a floating-point number.
    for seed, success in ((100, 0.82), (200, 0.94), (300, 0.94)):
        write_run(tmp_path / "other", [success], seed)
    assert np.mean([0.82, 0.94, 0.94]) < 0.9
    assert recipes.time_to_level(find_runs(tmp_path / "other"), 0.9).steps == 50_000


def test_ablation_compares_equal_steps_whatever_the_length_of_an_epoch(tmp_path):
    """An epoch is 12,500 steps with 10 environments and 25,000 with 20."""
    folder = tmp_path / "ablation"
    for seed, last in ((100, 0.9), (200, 1.0), (400, 0.7)):
        success = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, last]
        run = write_run(folder, success, seed, recipe="fast")
        assert run.parent.name == "ddpg-mrn+fast"
    twenty = {"recipe": "fast", "num_envs": 20, "variant": "20-envs"}
    write_run(folder, [0.2, 0.4, 0.6, 0.8], 300, **twenty)
    write_run(tmp_path, [1.0] * 8, 100, recipe="fast", critic="bvn")  # not part of the ablation
    _, rows = recipes.ablation_table(tmp_path)
    assert [" ".join(row) for row in rows] == [
        "fast 100, 200 10.0% 30.0% 50.0% 95.0% 90%, 100% 100,000",
        "fast 400 10.0% 30.0% 50.0% 70.0% 70% not reached",
        "20-envs 300 20.0% 40.0% 60.0% 80.0% 80% not reached",
    ]


def test_minutes_are_cycles_times_seconds_per_cycle():
    """On the published runs: paper 250 cycles, fast 175, 20 environments 100, no delay 150."""
    seconds = {name: [6.0, 5.0, 7.0] for name in recipes.CANDIDATES}
    _, rows = recipes.minutes_table(ROOT / "results" / "fast-recipe", seconds)
    assert [row[2:] for row in rows] == [
        ("250", "6.00 (5.00 - 7.00)", "25.0", "1.00"),
        ("175", "6.00 (5.00 - 7.00)", "17.5", "0.70"),
        ("100", "6.00 (5.00 - 7.00)", "10.0", "0.40"),
        ("150", "6.00 (5.00 - 7.00)", "15.0", "0.60"),
    ]


def test_missing_or_short_runs_raise_an_error_that_names_them(tmp_path):
    write_run(tmp_path / "ablation", [0.1] * 3, recipe="fast")
    with pytest.raises(UserError, match="seed-100 was not evaluated after 50,000 steps"):
        recipes.ablation_table(tmp_path)
    seconds = {name: [6.0, 5.0, 7.0] for name in recipes.CANDIDATES}
    with pytest.raises(UserError, match="no runs of ddpg-mrn that reach 90% on FetchPush"):
        recipes.minutes_table(tmp_path, seconds)


def test_both_recipes_are_compared_on_shared_seeds(tmp_path):
    """An epoch is 50,000 steps with paper and 12,500 with fast; only the former count."""
    for seed, last in ((100, 0.9), (200, 0.7), (300, 0.0)):
        write_run(tmp_path, [0.1, 0.3, last], seed)
    for seed, last in ((100, 0.5), (200, 0.6), (400, 1.0)):
        write_run(tmp_path, [0.0, 0.1, 0.3, 0.3, 0.3, 0.3, 0.4, last], seed, recipe="fast")
    write_run(tmp_path, [1.0], task="FetchPick", recipe="fast")  # has no counterpart
    _, rows = recipes.level_table(tmp_path)
    assert [" ".join(row) for row in rows] == [
        "FetchPush 100, 200 25% 100,000 50,000 0.50",
        "FetchPush 100, 200 50% 150,000 100,000 0.67",
        "FetchPush 100, 200 75% 150,000 not reached ",
    ]
