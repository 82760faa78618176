"""Tests of the theory study: values by hand, counterexamples, and general properties."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from mrn.cli.studies import theory
from mrn.studies.theory import report as theory_report
from mrn.studies.theory.approximation import ETA, LANDMARKS, TRAINING, axioms_table, landmark_error
from mrn.studies.theory.checks import (
    ALTERNATING,
    best_single_pair,
    count_violations,
    largest_excess,
    lift,
    visited_goal_pairs,
)
from mrn.studies.theory.mdp import (
    MDPs,
    goal_rewards,
    next_state_values,
    optimal_values,
    pair_rewards,
    random_goal_maps,
    random_mdps,
)
from mrn.studies.theory.report import TABLES, random_problems
from mrn.studies.toy.models import MODELS
from mrn.studies.toy.square import shortest_path_length
from mrn.utils.errors import UserError
from mrn.utils.tables import markdown_table, with_section

PAGE = Path(__file__).parents[2] / "docs" / "theory.md"
GAMMA = 0.5


def deterministic(next_state: list[int], states: int) -> MDPs:
    return MDPs(np.eye(states)[next_state][None])


# States s0 -> s1 -> s2 with two actions each; only at s2 do they differ. Pairs in order:
# s0: go, go; s1: go, go; s2: stay, back to s1.
CHAIN = deterministic([1, 1, 2, 2, 2, 1], states=3)


def test_optimal_values_by_hand():
    q = optimal_values(ALTERNATING, pair_rewards(2), GAMMA)[0]
    back = -GAMMA / (1 - GAMMA**2)  # 0, -1, 0, -1, ...
    there = -1 / (1 - GAMMA**2)  # -1, 0, -1, 0, ...
    assert q == pytest.approx(np.array([[back, there], [there, back]]), abs=1e-9)
    q = optimal_values(CHAIN, pair_rewards(6), GAMMA)[0]
    assert q[0, 4] == pytest.approx(-1 - GAMMA)  # s0, s1, then stay forever
    assert q[4, 4] == 0
    assert q[4, 5] == pytest.approx(-1 - 0 - GAMMA**2 / (1 - GAMMA**2))  # back every other step
    assert q[4, 0] == pytest.approx(-1 / (1 - GAMMA))  # s0 is unreachable


def test_stochastic_values_by_hand():
    # The first state moves to the second with probability 1/2; the second is absorbing.
    coin = MDPs(np.array([[[0.5, 0.5], [0.0, 1.0]]]))
    q = optimal_values(coin, pair_rewards(2), GAMMA)[0]
    assert q[0, 1] == pytest.approx(-4 / 3)  # q = -1 + 0.5 (0.5 q)
    # q = 0 + 0.5 (0.5 q + 0.5 (-2))
    assert q[0, 0] == pytest.approx(-2 / 3)


@pytest.mark.parametrize(("name", "gamma", "mdps"), random_problems("test"))
def test_theorem_1_on_random_mdps(name, gamma, mdps):
    q = optimal_values(mdps, pair_rewards(mdps.pairs), gamma)
    assert count_violations(q) == 0
    assert largest_excess(q) < -0.5
    self_values = np.diagonal(q, axis1=1, axis2=2)
    assert mdps.is_self_loop.any()
    assert ((self_values == 0) == mdps.is_self_loop).all()
    assert (self_values[~mdps.is_self_loop] < -1e-4).all()
    # The check detects a single value that is too high.
    q[0, 0, 1] += 1 / (1 - gamma)
    assert count_violations(q) > 0


def test_printed_lifting_fails_for_detours_that_end_at_a_copy():
    q = optimal_values(ALTERNATING, pair_rewards(2), GAMMA)
    printed = lift(q, q, repaired=False)[0]
    a, b, b_copy = 0, 1, 3
    assert printed[a, b] + printed[b, b_copy] == pytest.approx(-4 / 3 - 2 / 3)
    assert printed[a, b_copy] == -np.inf
    assert count_violations(printed[None]) == 2  # (a, b, b^) and (b, a, a^)
    repaired = lift(q, q)[0]
    assert repaired[a, b_copy] == pytest.approx(-4 / 3)
    assert count_violations(repaired[None]) == 0


@pytest.mark.parametrize("stochastic", [False, True])
def test_repaired_lifting_is_a_quasipseudometric_that_represents_q(stochastic):
    mdps = random_mdps(30, 5, 2, stochastic, np.random.default_rng(1))
    q = optimal_values(mdps, pair_rewards(10), 0.9)
    assert count_violations(lift(q, q, repaired=False)) == 30 * 10 * 9
    for exit_value in (-np.inf, -10.0):
        lifted = lift(q, q, exit_value=exit_value)
        assert count_violations(lifted) == 0
        assert (lifted <= 0).all()
        assert (np.diagonal(lifted, axis1=1, axis2=2) == 0).all()
        assert np.array_equal(lifted[:, :10, 10:], q)
    # An exit value of -1 is too high: it makes every point reachable from a copy at cost 1.
    assert count_violations(lift(q, q, exit_value=-1.0)) > 0


def test_supremum_over_pairs_is_not_the_value_of_the_goal():
    both_are_g = np.array([[0, 0]])
    q = optimal_values(ALTERNATING, pair_rewards(2), 0.98)
    g_values = optimal_values(ALTERNATING, goal_rewards(both_are_g, 1), 0.98)
    assert (g_values == 0).all()
    best = best_single_pair(q, both_are_g, 1)
    assert best == pytest.approx(np.full((1, 2, 1), -0.98 / (1 - 0.98**2)), abs=1e-8)
    visited, unique = visited_goal_pairs(ALTERNATING, g_values, both_are_g)
    assert (visited == 2).all()
    assert unique.all()


def test_visited_goal_pairs_by_hand():
    gamma = 0.9
    goal_of = np.array([[1, 1, 0, 1, 0, 1]])  # goal 0: the first action of s1, staying at s2
    goal_values = optimal_values(CHAIN, goal_rewards(goal_of, 2), gamma)
    visited, unique = visited_goal_pairs(CHAIN, goal_values, goal_of)
    assert visited[0, 0, 0] == 2  # s1 by the first action, then stay at s2
    assert visited[0, 3, 0] == 1  # s1 by the other action, then stay at s2
    assert visited[0, 4, 0] == 1  # stays at s2
    assert visited[0, 0, 1] == 3  # for the other goal: s0, then s1 by the second action and back
    assert unique.all()
    stay = np.array([[1, 1, 1, 1, 0, 1]])
    to_stay = optimal_values(CHAIN, goal_rewards(stay, 2), gamma)
    assert not visited_goal_pairs(CHAIN, to_stay, stay)[1][0, 0, 0]  # s1 by either action
    q = optimal_values(CHAIN, pair_rewards(6), gamma)
    gap = goal_values - best_single_pair(q, goal_of, 2)
    assert gap[0, 0, 0] == pytest.approx(gamma)  # -1, 0, 0, ... instead of -1, -1, 0, ...
    assert gap[0, 3, 0] == gap[0, 4, 0] == 0


@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_equality_holds_if_an_optimal_trajectory_visits_one_pair(gamma):
    generator = np.random.default_rng(2)
    mdps = random_mdps(60, 6, 3, False, generator)
    goal_of = random_goal_maps(60, 18, 5, generator)
    q = optimal_values(mdps, pair_rewards(18), gamma)
    goal_values = optimal_values(mdps, goal_rewards(goal_of, 5), gamma)
    gap = goal_values - best_single_pair(q, goal_of, 5)
    visited, unique = visited_goal_pairs(mdps, goal_values, goal_of)
    assert (gap > -1e-9).all()
    assert np.abs(gap[visited <= 1]).max() < 1e-8
    assert gap[(visited > 1) & unique].min() > 1e-4


def test_random_goal_maps_are_surjective():
    goal_of = random_goal_maps(50, 18, 5, np.random.default_rng(3))
    assert all(set(row) == set(range(5)) for row in goal_of)
    assert len({tuple(row) for row in goal_of}) == 50


def test_general_goals_can_be_lifted_with_either_reward():
    generator = np.random.default_rng(4)
    mdps = random_mdps(30, 6, 3, True, generator)
    goal_of = random_goal_maps(30, 18, 5, generator)
    to_pairs, rewards = pair_rewards(18), goal_rewards(goal_of, 5)
    q, goal_values = (optimal_values(mdps, r, GAMMA) for r in (to_pairs, rewards))
    for values in (goal_values, next_state_values(goal_values, rewards, GAMMA)):
        lifted = lift(q, values, exit_value=-2.0)
        assert count_violations(lifted) == 0
        assert np.array_equal(lifted[:, :18, 18:], values)


@pytest.mark.parametrize(("gamma", "violated"), [(0.5, True), (0.61, True), (0.63, False)])
def test_next_state_reward_violates_theorem_1_for_small_discounts(gamma, violated):
    q = optimal_values(CHAIN, pair_rewards(6), gamma)
    next_q = next_state_values(q, pair_rewards(6), gamma)[0]
    x, y, z = 0, 2, 4  # s0, s1 and staying at s2
    assert next_q[x, y] == pytest.approx(-gamma / (1 - gamma**2))  # and back every other step
    assert next_q[y, z] == pytest.approx(0)
    assert next_q[x, z] == pytest.approx(-1)
    assert (next_q[x, y] + next_q[y, z] > next_q[x, z]) is np.bool_(violated)


def test_axioms_on_trained_networks(monkeypatch):
    shorter = dataclasses.replace(TRAINING, seeds=(100, 200), iterations=150)
    some = {name: MODELS[name] for name in ("mrn", "pqe", "monolithic")}
    monkeypatch.setattr("mrn.studies.theory.approximation.TRAINING", shorter)
    monkeypatch.setattr("mrn.studies.theory.approximation.MODELS", some)
    rows = {row[0]: row[1:] for row in axioms_table()[1]}
    for name in ("MRN", "PQE"):
        self_distance, smallest, violations, _ = rows[name]
        assert (self_distance, violations) == ("0", "0.00%")
        assert float(smallest) > 0
    assert float(rows["monolithic"][0]) > 0.1
    assert float(rows["monolithic"][3]) > 0.01


def test_landmarks_by_hand():
    # On a line with v(x, y) = |x - y| and landmarks 0 and 1: from 0.2 to 0.7, landmark 1 gives
    # the exact 0.8 - 0.3. From 0.2 to 2, both give 0: relu(0.2 - 2) and relu(0.8 - 1).
    to_start = torch.tensor([[0.2, 0.8], [0.2, 0.8]])
    to_goal = torch.tensor([[0.7, 0.3], [2.0, 1.0]])
    mean, largest = landmark_error(to_start, to_goal, torch.tensor([0.5, 1.8]))
    assert (mean, largest) == pytest.approx((0.9, 1.8))


def test_landmarks_converge_except_where_the_distance_is_discontinuous():
    headings, rows = TABLES["landmarks"]()
    page = PAGE.read_text()
    assert with_section(page, "landmarks", markdown_table((headings, rows))) == page
    columns = list(zip(*rows, strict=True))
    slope, strip, mdp = (np.array([float(e) for e in columns[i] if e]) for i in (2, 3, 6))
    assert (np.diff(slope) <= 0).all()
    assert slope[-1] < 0.05
    assert strip[-1] < 0.005
    assert mdp[-1] == 0 < mdp[-2]
    # Landmarks cannot resolve heights between two of them: at x = 1, d* from a point to one
    # slightly below is 2 (1 - eta), and the construction gives 0.
    generator = torch.Generator().manual_seed(5)
    landmarks = torch.rand(LANDMARKS[-1], 2, generator=generator, dtype=torch.float64)
    points = torch.tensor([[1.0, 0.5], [1.0, 0.5 - 1e-7]], dtype=torch.float64)
    to = shortest_path_length(points[:, None], landmarks, ETA)
    exact = shortest_path_length(points[:1], points[1:], ETA)
    assert exact.item() == pytest.approx(2 * (1 - ETA), abs=1e-6)
    assert landmark_error(to[:1], to[1:], exact)[1] == pytest.approx(2 * (1 - ETA), abs=1e-5)


@pytest.mark.parametrize("name", ["triangle", "lifting", "goals", "reward"])
def test_docs_page_matches_the_tables(name):
    page = PAGE.read_text()
    assert with_section(page, name, markdown_table(TABLES[name]())) == page


def test_page_without_sections_is_rejected_before_the_computation(tmp_path, monkeypatch):
    computed = []
    monkeypatch.setattr(theory_report, "TABLES", {"triangle": lambda: computed.append("a table")})
    page = tmp_path / "page.md"
    page.write_text("nothing\n")
    with pytest.raises(UserError, match="<!-- triangle: begin -->"):
        theory_report.run(page)
    assert page.read_text() == "nothing\n"
    with pytest.raises(UserError, match="cannot read"):
        theory_report.run(tmp_path / "none.md")
    assert not computed


def test_title_is_shown_before_the_table_is_computed(monkeypatch):
    def slow_table():
        """Check a theorem."""
        events.append("computed")
        return ("value",), [("1",)]

    events = []
    monkeypatch.setattr(theory_report, "TABLES", {"slow": slow_table, "again": slow_table})
    theory_report.run(None, events.append, lambda table: events.append("shown"))
    assert events[:3] == ["slow: Check a theorem.", "computed", "shown"]
    assert events[3].startswith("again: ")


def test_theory_command_prints_and_writes_the_same_tables(tmp_path, monkeypatch, capsys):
    tables = {"triangle": lambda: (("what", "value"), [("Q*(x, [x])", "-0.667")])}
    monkeypatch.setattr(theory_report, "TABLES", tables)
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- triangle: begin -->\nold\n<!-- triangle: end -->\nb\n")
    theory(page)
    shown = capsys.readouterr().out
    assert re.search(r"Q\*\(x, \[x\]\) +│ -0.667", shown)
    assert shown.startswith("triangle: ")
    lines = ["<!-- triangle: begin -->", "| what | value |", "| --- | --- |"]
    lines += ["| Q*(x, [x]) | -0.667 |", "<!-- triangle: end -->"]
    assert page.read_text() == "\n".join(["a", *lines, "b", ""])
