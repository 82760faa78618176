"""The paper's theory: values worked out by hand, counterexamples, and what holds everywhere."""

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
    broken_triples,
    goal_pairs_met,
    largest_excess,
    lift,
)
from mrn.studies.theory.mdp import (
    MDPs,
    goal_rewards,
    next_state_values,
    optimal_values,
    pair_rewards,
    random_maps,
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


# States s0 -> s1 -> s2; at s1 and s2 there are two actions worth the name. Pairs in order:
# s0: go, go; s1: go, go; s2: stay, back to s1.
CHAIN = deterministic([1, 1, 2, 2, 2, 1], states=3)


def test_optimal_values_by_hand():
    q = optimal_values(ALTERNATING, pair_rewards(2), GAMMA)[0]
    back = -GAMMA / (1 - GAMMA**2)  # 0, -1, 0, -1, ...
    there = -1 / (1 - GAMMA**2)  # -1, 0, -1, 0, ...
    assert q == pytest.approx(np.array([[back, there], [there, back]]), abs=1e-9)
    q = optimal_values(CHAIN, pair_rewards(6), GAMMA)[0]
    assert q[0, 4] == pytest.approx(-1 - GAMMA)  # s0, s1, then stay for ever
    assert q[4, 4] == 0
    assert q[4, 5] == pytest.approx(-1 - 0 - GAMMA**2 / (1 - GAMMA**2))  # back every other step
    assert q[4, 0] == pytest.approx(-1 / (1 - GAMMA))  # s0 is out of reach


def test_a_coin_by_hand():
    # One state moves on with probability 1/2; the other stays. Goal: the second pair.
    coin = MDPs(np.array([[[0.5, 0.5], [0.0, 1.0]]]))
    q = optimal_values(coin, pair_rewards(2), GAMMA)[0]
    assert q[0, 1] == pytest.approx(-4 / 3)  # q = -1 + 0.5 (0.5 q)
    # q = 0 + 0.5 (0.5 q + 0.5 (-2))
    assert q[0, 0] == pytest.approx(-2 / 3)


@pytest.mark.parametrize(("name", "gamma", "mdps"), random_problems("test"))
def test_theorem_1_on_random_mdps(name, gamma, mdps):
    q = optimal_values(mdps, pair_rewards(mdps.pairs), gamma)
    assert broken_triples(q) == 0
    assert largest_excess(q) < -0.5
    own = np.diagonal(q, axis1=1, axis2=2)
    assert mdps.can_stay.any()
    assert ((own == 0) == mdps.can_stay).all()
    assert (own[~mdps.can_stay] < -1e-4).all()
    # The check can fail: a value that is 1 too high somewhere is found.
    q[0, 0, 1] += 1 / (1 - gamma)
    assert broken_triples(q) > 0


def test_the_printed_lifting_fails_where_a_detour_ends_at_a_copy():
    q = optimal_values(ALTERNATING, pair_rewards(2), GAMMA)
    printed = lift(q, q, repaired=False)[0]
    a, b, b_copy = 0, 1, 3
    assert printed[a, b] + printed[b, b_copy] == pytest.approx(-4 / 3 - 2 / 3)
    assert printed[a, b_copy] == -np.inf
    assert broken_triples(printed[None]) == 2  # (a, b, b^) and (b, a, a^)
    repaired = lift(q, q)[0]
    assert repaired[a, b_copy] == pytest.approx(-4 / 3)
    assert broken_triples(repaired[None]) == 0


@pytest.mark.parametrize("stochastic", [False, True])
def test_the_repaired_lifting_is_a_quasipseudometric_that_represents_q(stochastic):
    mdps = random_mdps(30, 5, 2, stochastic, np.random.default_rng(1))
    q = optimal_values(mdps, pair_rewards(10), 0.9)
    assert broken_triples(lift(q, q, repaired=False)) == 30 * 10 * 9
    for far in (-np.inf, -10.0):
        lifted = lift(q, q, far=far)
        assert broken_triples(lifted) == 0
        assert (lifted <= 0).all()
        assert (np.diagonal(lifted, axis1=1, axis2=2) == 0).all()
        assert np.array_equal(lifted[:, :10, 10:], q)
    # -1 is too little for "never": from one copy one would get anywhere at that price.
    assert broken_triples(lift(q, q, far=-1.0)) > 0


def test_the_supremum_over_pairs_is_not_the_goals_value():
    both_are_g = np.array([[0, 0]])
    q = optimal_values(ALTERNATING, pair_rewards(2), 0.98)
    of_g = optimal_values(ALTERNATING, goal_rewards(both_are_g, 1), 0.98)
    assert (of_g == 0).all()
    best = best_single_pair(q, both_are_g, 1)
    assert best == pytest.approx(np.full((1, 2, 1), -0.98 / (1 - 0.98**2)), abs=1e-8)
    met, only = goal_pairs_met(ALTERNATING, of_g, both_are_g)
    assert (met == 2).all()
    assert only.all()


def test_pairs_met_by_hand():
    gamma = 0.9
    goal_of = np.array([[1, 1, 0, 1, 0, 1]])  # goal 0: the first action of s1, staying at s2
    of_goals = optimal_values(CHAIN, goal_rewards(goal_of, 2), gamma)
    met, only = goal_pairs_met(CHAIN, of_goals, goal_of)
    assert met[0, 0, 0] == 2  # s1 by the first action, then stay at s2
    assert met[0, 3, 0] == 1  # s1 by the other action, then stay at s2
    assert met[0, 4, 0] == 1  # stays
    assert met[0, 0, 1] == 3  # for the other goal: s0, then s1 by the second action and back
    assert only.all()
    stay = np.array([[1, 1, 1, 1, 0, 1]])
    to_stay = optimal_values(CHAIN, goal_rewards(stay, 2), gamma)
    assert not goal_pairs_met(CHAIN, to_stay, stay)[1][0, 0, 0]  # s1 by either action
    q = optimal_values(CHAIN, pair_rewards(6), gamma)
    gap = of_goals - best_single_pair(q, goal_of, 2)
    assert gap[0, 0, 0] == pytest.approx(gamma)  # -1, 0, 0, ... beside -1, -1, 0, ...
    assert gap[0, 3, 0] == gap[0, 4, 0] == 0


@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_equality_holds_where_an_optimal_trajectory_meets_one_pair(gamma):
    generator = np.random.default_rng(2)
    mdps = random_mdps(60, 6, 3, False, generator)
    goal_of = random_maps(60, 18, 5, generator)
    q = optimal_values(mdps, pair_rewards(18), gamma)
    of_goals = optimal_values(mdps, goal_rewards(goal_of, 5), gamma)
    gap = of_goals - best_single_pair(q, goal_of, 5)
    met, only = goal_pairs_met(mdps, of_goals, goal_of)
    assert (gap > -1e-9).all()
    assert np.abs(gap[met <= 1]).max() < 1e-8
    assert gap[(met > 1) & only].min() > 1e-4


def test_random_maps_are_onto():
    goal_of = random_maps(50, 18, 5, np.random.default_rng(3))
    assert all(set(row) == set(range(5)) for row in goal_of)
    assert len({tuple(row) for row in goal_of}) == 50


def test_goals_of_any_kind_lift_with_either_reward():
    generator = np.random.default_rng(4)
    mdps = random_mdps(30, 6, 3, True, generator)
    goal_of = random_maps(30, 18, 5, generator)
    between, rewards = pair_rewards(18), goal_rewards(goal_of, 5)
    q, of_goals = (optimal_values(mdps, r, GAMMA) for r in (between, rewards))
    for values in (of_goals, next_state_values(of_goals, rewards, GAMMA)):
        lifted = lift(q, values, far=-2.0)
        assert broken_triples(lifted) == 0
        assert np.array_equal(lifted[:, :18, 18:], values)


@pytest.mark.parametrize(("gamma", "broken"), [(0.5, True), (0.61, True), (0.63, False)])
def test_the_next_states_reward_breaks_theorem_1_for_small_discounts(gamma, broken):
    q = optimal_values(CHAIN, pair_rewards(6), gamma)
    later = next_state_values(q, pair_rewards(6), gamma)[0]
    x, y, z = 0, 2, 4  # s0, s1 and staying at s2
    assert later[x, y] == pytest.approx(-gamma / (1 - gamma**2))  # and back every other step
    assert later[y, z] == pytest.approx(0)
    assert later[x, z] == pytest.approx(-1)
    assert (later[x, y] + later[y, z] > later[x, z]) is np.bool_(broken)


def test_axioms_on_trained_networks(monkeypatch):
    shorter = dataclasses.replace(TRAINING, seeds=(100, 200), iterations=150)
    some = {name: MODELS[name] for name in ("mrn", "pqe", "monolithic")}
    monkeypatch.setattr("mrn.studies.theory.approximation.TRAINING", shorter)
    monkeypatch.setattr("mrn.studies.theory.approximation.MODELS", some)
    rows = {row[0]: row[1:] for row in axioms_table()[1]}
    for name in ("MRN", "PQE"):
        at_itself, lowest, broken, _ = rows[name]
        assert (at_itself, broken) == ("0", "0.00%")
        assert float(lowest) > 0
    assert float(rows["monolithic"][0]) > 0.1
    assert float(rows["monolithic"][3]) > 0.01


def test_landmarks_by_hand():
    # On a line with v(x, y) = |x - y| and landmarks 0 and 1: from 0.2 to 0.7 landmark 1 sees
    # 0.8 - 0.3, exactly; from 0.2 to 2, both see less: relu(0.2 - 2) and relu(0.8 - 1).
    to_start = torch.tensor([[0.2, 0.8], [0.2, 0.8]])
    to_goal = torch.tensor([[0.7, 0.3], [2.0, 1.0]])
    mean, largest = landmark_error(to_start, to_goal, torch.tensor([0.5, 1.8]))
    assert (mean, largest) == pytest.approx((0.9, 1.8))


def test_landmarks_converge_but_not_where_the_distance_jumps():
    heads, rows = TABLES["landmarks"]()
    page = PAGE.read_text()
    assert with_section(page, "landmarks", markdown_table((heads, rows))) == page
    columns = list(zip(*rows, strict=True))
    slope, strip, mdp = (np.array([float(e) for e in columns[i] if e]) for i in (2, 3, 6))
    assert (np.diff(slope) <= 0).all()
    assert slope[-1] < 0.05
    assert strip[-1] < 0.005
    assert mdp[-1] == 0 < mdp[-2]
    # Between two landmarks' heights any number of them sees no difference: at x = 1, from a
    # point to one next to nothing below, d* is 2 (1 - eta) and the construction gives nothing.
    generator = torch.Generator().manual_seed(5)
    landmarks = torch.rand(LANDMARKS[-1], 2, generator=generator, dtype=torch.float64)
    points = torch.tensor([[1.0, 0.5], [1.0, 0.5 - 1e-7]], dtype=torch.float64)
    to = shortest_path_length(points[:, None], landmarks, ETA)
    exact = shortest_path_length(points[:1], points[1:], ETA)
    assert exact.item() == pytest.approx(2 * (1 - ETA), abs=1e-6)
    assert landmark_error(to[:1], to[1:], exact)[1] == pytest.approx(2 * (1 - ETA), abs=1e-5)


@pytest.mark.parametrize("name", ["triangle", "lifting", "goals", "reward"])
def test_the_page_shows_what_the_command_makes(name):
    page = PAGE.read_text()
    assert with_section(page, name, markdown_table(TABLES[name]())) == page


def test_a_page_without_a_place_for_the_tables(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(theory_report, "TABLES", {"triangle": lambda: made.append("a table")})
    page = tmp_path / "page.md"
    page.write_text("nothing\n")
    with pytest.raises(UserError, match="<!-- triangle: begin -->"):
        theory_report.run(page)
    assert page.read_text() == "nothing\n"
    with pytest.raises(UserError, match="cannot read"):
        theory_report.run(tmp_path / "none.md")
    assert not made


def test_the_command_prints_and_writes_the_same_tables(tmp_path, monkeypatch, capsys):
    tables = {"triangle": lambda: (("what", "value"), [("Q*(x, [x])", "-0.667")])}
    monkeypatch.setattr(theory_report, "TABLES", tables)
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- triangle: begin -->\nold\n<!-- triangle: end -->\nb\n")
    theory(page)
    assert re.search(r"Q\*\(x, \[x\]\) +│ -0.667", capsys.readouterr().out)
    lines = ["<!-- triangle: begin -->", "| what | value |", "| --- | --- |"]
    lines += ["| Q*(x, [x]) | -0.667 |", "<!-- triangle: end -->"]
    assert page.read_text() == "\n".join(["a", *lines, "b", ""])
