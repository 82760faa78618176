"""Tables of the stored measurements."""

import json
from pathlib import Path

import pytest

from benchmarks import __main__ as bench
from benchmarks.report import TARGETS, measured, solve_section, solve_table, tables

RESULTS = json.loads(bench.RESULTS.read_text())


@pytest.mark.parametrize(("metric", "path", "direction", "target"), TARGETS)
def test_every_target_is_measured_and_judged(metric, path, direction, target):
    value = RESULTS
    for key in path.split("."):
        value = value[key]
    (_, rows), *_ = tables(RESULTS)
    met = value >= target if direction == ">=" else value <= target
    assert (metric, f"{value:.2f}", f"{direction} {target:g}", "yes" if met else "no") in rows


def test_markdown_starts_with_the_machine_and_has_every_table():
    assert {"cores", "cpu", "torch", "envpool", "mujoco"} <= RESULTS["machine"].keys()
    text = measured(RESULTS)
    assert text.startswith(f"On 2 cores of {RESULTS['machine']['cpu']}, with torch ")
    assert text.count("\n| --- |") == len(list(tables(RESULTS)))


def test_shares_of_a_cycle_add_up_to_one():
    assert sum(RESULTS["cycle"].values()) == pytest.approx(1)
    assert all(share >= 0 for share in RESULTS["cycle"].values())


def test_solve_table_shows_success_steps_updates_and_minutes():
    results = {
        "fast": {"success": 0.91, "steps": 87_500, "updates": 7_000, "minutes": 6.04},
        "paper": {"success": 0.92, "steps": 250_000, "updates": 10_000, "minutes": 12.0},
        "sb3": {"success_at_stop": 0.05, "steps": 4_000, "updates": 3_000, "minutes": 15},
    }
    _, rows = solve_table(results)
    assert [row[1:] for row in rows] == [
        ("91%", "87,500", "7,000", "6.0"),
        ("92%", "250,000", "10,000", "12.0"),
        ("5%", "4,000", "3,000", "15.0"),
    ]


def test_stored_solve_results_are_solved_and_up_to_date():
    from benchmarks import solve

    stored = json.loads(solve.RESULTS.read_text())
    assert stored["fast"]["success"] >= 0.9 <= stored["paper"]["success"]
    assert not any(solve.is_missing(stored, name) for name in ("fast", "paper", "sb3"))
    assert "mrn, recipe fast" in solve_section(stored)


def test_benchmarks_do_not_edit_pages():
    folder = Path(bench.__file__).parent
    assert not any("write_sections" in file.read_text() for file in folder.glob("*.py"))
