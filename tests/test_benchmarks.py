"""The benchmark measures what it says, and the page shows what it measured."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from benchmarks import cycles, evidence, processes, resting, solve
from benchmarks.floor import bare_products, record
from benchmarks.maze import cells_apart
from benchmarks.measure import take_turns
from benchmarks.recipes import ablation_table, equal_table, levels_table, solved
from benchmarks.recipes import table as recipes_table
from benchmarks.report import TARGETS, machine, measured, solve_table, tables
from benchmarks.setting import fill, make_trainer, one_update
from mrn.analysis.runs import find_runs
from mrn.envs import find_task, make_envs
from mrn.recipes import RECIPES
from mrn.utils.errors import UserError
from mrn.utils.tables import markdown_table, with_section
from tests.sweeps.helpers import write_run

ROOT = Path(__file__).parents[1]
RESULTS = json.loads((ROOT / "benchmarks" / "results" / "latest.json").read_text())


def test_candidates_take_turns_and_the_first_turn_does_not_count(monkeypatch):
    now, log = [0.0], []
    durations = {"a": iter([100, 1, 2, 9]), "b": iter([50, 4, 4, 4])}
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    def candidate(name):
        def call():
            log.append(name)
            now[0] += next(durations[name])

        return call

    times = take_turns({name: candidate(name) for name in "ab"}, repeats=3)
    assert log == list("abababab")
    assert times["a"] == (2, 1.5, 5.5)  # median and quartiles of 1, 2, 9
    assert times["b"] == (4, 4, 4)


def test_the_floor_is_made_of_the_updates_products():
    """All products of the monolithic update, by hand: B x (sum of in x out) for each pass."""
    batch, width = 64, 32
    trainer = make_trainer(
        "FetchPush", "monolithic", batch_size=batch, hidden_dim=width, buffer_size=10_000
    )
    fill(trainer, 10_000)
    made_of = record(lambda: one_update(trainer))
    work = sum(a.shape[0] * a.shape[1] * b.shape[1] for a, b in made_of.factors)
    hidden = 2 * width * width
    critic, actor = 32 * width + hidden + width, 28 * width + hidden + 4 * width
    forward = 2 * actor + 3 * critic  # targets, both losses
    weights = critic + actor  # gradients of the weights
    # Gradients of the inputs of layers: not of the first, but where the action enters it.
    inputs = (hidden + width) + (hidden + 4 * width) + critic
    assert work == batch * (forward + weights + inputs)
    products = bare_products(made_of)
    assert record(products).operations == len(made_of.factors) < made_of.operations


def test_filling_stores_what_was_asked_for():
    trainer = make_trainer("FetchPush", buffer_size=10_000, hidden_dim=16)
    fill(trainer, 5_000)
    assert len(trainer.replay) == 5_000
    assert not torch.equal(trainer.agent.normalizer.state.scale, torch.ones(25))


@pytest.mark.parametrize(("what", "where", "direction", "asked"), TARGETS)
def test_every_target_is_measured_and_judged(what, where, direction, asked):
    value = RESULTS
    for key in where.split("."):
        value = value[key]
    (_, rows), *_ = tables(RESULTS)
    met = value >= asked if direction == ">=" else value <= asked
    assert (what, f"{value:.2f}", f"{direction} {asked:g}", "yes" if met else "no") in rows


def test_the_page_shows_the_latest_results():
    page = (ROOT / "docs" / "performance.md").read_text()
    assert with_section(page, "measured", measured(RESULTS)) == page
    assert {"cores", "cpu", "torch", "envpool", "mujoco"} <= RESULTS["machine"].keys()


def test_the_page_of_scale_shows_what_was_measured_and_computed():
    folder = ROOT / "benchmarks" / "results"
    figures = json.loads((folder / "processes.json").read_text())
    page = (ROOT / "docs" / "scale.md").read_text()
    for name, table in processes.tables(figures).items():
        assert with_section(page, name, markdown_table(table)) == page
    # A ring of 4: each sends 6/4 of a megabyte at 1.25 GB/s, in 6 steps of 50 microseconds.
    assert processes._all_reduce(1e6, 4) == pytest.approx(1.5e6 / 1.25e9 + 300e-6)


def test_a_task_is_solved_where_the_mean_over_seeds_is(tmp_path):
    for seed, success in ((100, [0.5, 0.96, 0.92, 0.8]), (200, [0.7, 0.82, 0.94, 1.0])):
        write_run(tmp_path, success, seed)
    runs = find_runs(tmp_path)
    # After three epochs of 50,000 steps, each a second of playing and one of learning; one follows.
    assert solved(runs, 0.9) == (150_000, 1, pytest.approx(6 / 60), pytest.approx(0.9))
    assert solved(runs, 0.95) is None
    write_run(tmp_path, [0.1] * 4, 400)
    _, rows = recipes_table(tmp_path)
    assert [", ".join(row[2:]) for row in rows] == [
        "100, 200, 90%, 150,000, 1, 0.1, 90.0%, 90.0% after 200,000",
        "400, 90%, not reached, , , , 10.0% after 200,000",
    ]
    # A mean of 0.9, which as a floating-point number is less.
    for seed, success in ((100, 0.82), (200, 0.94), (300, 0.94)):
        write_run(tmp_path / "other", [success], seed)
    assert np.mean([0.82, 0.94, 0.94]) < 0.9
    assert solved(find_runs(tmp_path / "other"), 0.9).steps == 50_000


def test_an_ablation_is_read_at_the_same_steps_whatever_the_length_of_an_epoch(tmp_path):
    """By the recipe an epoch is 12,500 steps here; with 20 episodes in a cycle, 25,000."""
    whole, without = tmp_path / "whole", tmp_path / "without"
    for seed, last in ((100, 0.9), (200, 1.0), (400, 0.7)):
        success = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, last]
        folder = write_run(whole, success, seed, recipe="fast")
        assert folder.parent.name == "ddpg-mrn+fast"
    write_run(whole, [1.0] * 8, 100, recipe="fast", critic="bvn")  # not of the recipe with mrn
    twenty = {"recipe": "fast", "num_envs": 20, "variant": "num_envs=20"}
    write_run(without, [0.2, 0.4, 0.6, 0.8], 300, **twenty)
    _, rows = ablation_table(whole, without)
    assert [" ".join(row) for row in rows] == [
        "fast 100, 200 10.0% 30.0% 50.0% 95.0% 90%, 100% 100,000",
        "fast 400 10.0% 30.0% 50.0% 70.0% 70% not reached",
        "num_envs=20 300 20.0% 40.0% 60.0% 80.0% 80% not reached",
    ]


def test_minutes_are_cycles_times_the_seconds_of_one():
    """On the published runs: paper 250 cycles, fast 175, with 20 episodes 100, every actor 150."""
    _, rows = cycles.table({name: [6.0, 5.0, 7.0] for name in cycles.CANDIDATES})
    assert [row[2:] for row in rows] == [
        ("250", "6.00 (5.00 - 7.00)", "25.0", "1.00"),
        ("175", "6.00 (5.00 - 7.00)", "17.5", "0.70"),
        ("100", "6.00 (5.00 - 7.00)", "10.0", "0.40"),
        ("150", "6.00 (5.00 - 7.00)", "15.0", "0.60"),
    ]
    page = cycles.PAGE.read_text()
    times = json.loads(cycles.TIMES.read_text())
    assert with_section(page, "cycles", cycles.section(times)) == page


def test_runs_that_are_missing_or_too_short_for_a_table_are_named(tmp_path, monkeypatch):
    write_run(tmp_path, [0.1], task="FetchReach")
    with pytest.raises(UserError, match=r"has no runs of ddpg-mrn\+fast on FetchPush: "):
        ablation_table(tmp_path, tmp_path)
    write_run(tmp_path, [0.1] * 3, recipe="fast")
    with pytest.raises(UserError, match="seed-100 was not evaluated after 50,000 steps"):
        ablation_table(tmp_path, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(cycles, "CANDIDATES", {"fast": (tmp_path, "ddpg-mrn+fast", {})})
        with pytest.raises(UserError, match=r"the runs of ddpg-mrn\+fast are not at 90% yet"):
            cycles.reached()


def test_both_recipes_are_compared_on_the_seeds_and_steps_that_both_have(tmp_path):
    """An epoch of the paper's is 50,000 steps, one of fast 12,500."""
    whole = tmp_path / "whole"
    for seed, last in ((100, 0.9), (200, 0.7), (300, 0.0)):
        write_run(whole, [0.1, 0.3, last], seed)
    for seed, last in ((100, 0.5), (200, 0.6), (400, 1.0)):
        write_run(whole, [0.0, 0.1, 0.2, 0.3, 0.3, 0.3, 0.4, last], seed, recipe="fast")
    write_run(whole, [1.0], task="FetchPick", recipe="fast")  # nothing to compare it with
    _, rows = levels_table(whole)
    assert [" ".join(row) for row in rows] == [
        "FetchPush 100, 200 25% 100,000 50,000 0.50",
        "FetchPush 100, 200 50% 150,000 100,000 0.67",
        "FetchPush 100, 200 75% 150,000 not reached ",
    ]
    slowed = {"recipe": "fast", "target_update_interval": 0, "variant": "target_update_interval=0"}
    for seed, last in ((100, 0.2), (200, 0.4), (300, 1.0)):
        write_run(tmp_path / "without", [0.0, 0.0, 0.0, last], seed, **slowed)
    write_run(tmp_path / "without", [0.9] * 4, 100, recipe="fast", variant="other")
    _, rows = equal_table(whole, tmp_path / "without")
    assert [" ".join(row) for row in rows] == [
        "FetchPush 100, 200 50,000 10.0% 30.0% 30.0%",
        "FetchPush 100, 200 100,000 30.0% 55.0% ",
    ]


def test_the_page_of_results_says_how_far_the_evidence_is():
    page = (ROOT / "results" / "README.md").read_text()
    for name, table in evidence.sections(ROOT / "results").items():
        assert with_section(page, name, markdown_table(table)) == page


def test_a_seed_is_shown_on_both_processors():
    heads, rows = evidence.processors(ROOT / "results")
    assert heads == ("critic", "processor", *"12345678")
    assert ("`monolithic`", "Intel Xeon", "3", "5", "2", "9", "6", "6", "16", "39") in rows
    assert ("`monolithic`", "AMD EPYC", "3", "4", "2", "8", "5", "6", "17", "21") in rows
    assert len(rows) == 6


def test_hours_are_those_of_the_runs_that_are_kept(tmp_path):
    shutil.copytree(ROOT / "results" / "suites", tmp_path / "suites")
    for seed in (100, 200):
        write_run(tmp_path / "push", [0.5] * 900, seed)  # 3 seconds each
    _, (push, hand, *_) = evidence.table(tmp_path)
    assert push == ("`push`", "2 of 12", "1.5")
    assert hand == ("`hand`", "0 of 6", "")


def test_a_recipe_that_has_changed_is_solved_again(monkeypatch):
    measured = {name: {"settings": solve.settings_of(name)} for name in ("fast", "sb3")}
    missing = [name for name in ("fast", "paper", "sb3") if solve.is_missing(measured, name)]
    assert missing == ["paper"]
    monkeypatch.setitem(RECIPES, "fast", RECIPES["fast"] | {"redraws": 3})
    assert solve.is_missing(measured, "fast")
    assert not solve.is_missing(measured, "sb3")


def test_the_page_shows_how_long_it_took_until_a_task_was_solved():
    measured = json.loads((ROOT / "benchmarks" / "results" / "solve.json").read_text())
    assert measured["fast"]["success"] >= 0.9 <= measured["paper"]["success"]
    assert not any(solve.is_missing(measured, name) for name in ("fast", "paper", "sb3"))
    page = (ROOT / "docs" / "performance.md").read_text()
    text = machine(measured["machine"]) + "\n\n" + markdown_table(solve_table(measured))
    assert with_section(page, "solve", text) == page
    results = {
        "fast": {"success": 0.91, "steps": 87_500, "gradient_steps": 7_000, "minutes": 6.04},
        "paper": {"success": 0.92, "steps": 250_000, "gradient_steps": 10_000, "minutes": 12.0},
        "sb3": {"success_at_stop": 0.05, "steps": 4_000, "gradient_steps": 3_000, "minutes": 15},
    }
    _, rows = solve_table(results)
    assert [row[1:] for row in rows] == [
        ("91%", "87,500", "7,000", "6.0"),
        ("92%", "250,000", "10,000", "12.0"),
        ("5%", "4,000", "3,000", "15.0"),
    ]


def test_resting_and_stepping_on_play_the_same_episodes_at_another_cost():
    """What is timed: the same lengths, by simulating their own steps or all of them."""
    shape = find_task("tests.envs.custom_envs:EndsAtGoal-v0").spec
    simulated, played = [], []
    for make in (lambda *what: make_envs(*what, "gymnasium"), resting.never_resting):
        with make(shape, 4) as envs:
            steps = [Mock(wraps=env.unwrapped.step) for env in envs.envs.envs]
            for env, step in zip(envs.envs.envs, steps, strict=True):
                env.unwrapped.step = step
            played.append(resting.lengths(envs, walkers=4, rounds=3))
            simulated.append(sum(step.call_count for step in steps))
    assert len({*played[0].flat}) > 1
    assert (played[0] == played[1]).all()
    within, clock = resting.counted(played[0])
    assert simulated[0] == within
    assert within < simulated[1] < clock  # at the start of another episode Gymnasium only resets


def test_steps_within_episodes_are_counted_and_those_until_the_last_end():
    length = np.array([[3, 5, 2], [4, 4, 4]])
    assert resting.counted(length) == (22, 15 + 12)


def test_the_page_says_what_resting_saves():
    """Its counts are those of the episodes; its ratios, those of its seconds."""
    _, _, section = resting.PAGE.read_text().partition("<!-- resting: begin -->")
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:2] == "| "]
    rows = [line for line in lines if line[0] == "PandaReach"]
    assert len(rows) == len(resting.WALKERS)
    for row in rows:
        rest, on = (float(cell.split()[0]) for cell in row[4:6])
        assert float(row[6]) == pytest.approx(rest / on, abs=0.02)
    pytest.importorskip("panda_gym")
    shape = find_task(resting.PANDA).spec
    with make_envs(shape, resting.NUM_ENVS) as envs:
        within, clock = resting.counted(resting.lengths(envs, 5, resting.ROUNDS))
    assert rows[1][2:4] == ["5 of 10", f"{within:,} of {clock:,}"]


def test_cells_are_counted_along_the_maze_and_not_through_its_wall():
    start = np.array([[-1.2, 0.8], [0.9, 0.1], [-1.1, -0.9]])
    goal = np.array([[-0.8, -1.2], [1.2, 0.9], [-0.9, -1.0]])
    assert cells_apart(start, goal).tolist() == [6, 1, 0]


def test_shares_of_a_cycle_add_up():
    assert sum(RESULTS["cycle"].values()) == pytest.approx(1)
    assert all(share >= 0 for share in RESULTS["cycle"].values())


def test_heavy_packages_are_imported_only_where_used():
    code = (
        "import sys, mrn, mrn.cli, mrn.training.loop\n"
        "for name in mrn.critics.CRITICS: mrn.make_critic(name, 61, 20, 7)\n"
        "print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"envpool", "gymnasium", "mujoco", "tensorboard", "torch._dynamo", "scipy"}
    assert not heavy & set(run.stdout.split())
