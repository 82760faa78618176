"""`mrn theory`: the paper's theory as tables of what was checked (docs/theory.md)."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from mrn.studies.theory.approximation import axioms_table, landmarks_table
from mrn.studies.theory.checks import (
    ALTERNATING,
    best_single_pair,
    broken_triples,
    goal_pairs_met,
    largest_excess,
    lift,
)
from mrn.studies.theory.mdp import (
    Array,
    MDPs,
    goal_rewards,
    next_state_values,
    optimal_values,
    pair_rewards,
    random_maps,
    random_mdps,
)
from mrn.utils.seeding import derive_seed
from mrn.utils.tables import Table, require_sections, write_sections

DISCOUNTS = (0.5, 0.9, 0.98)
COUNT, STATES, ACTIONS, GOALS = 100, 6, 3, 5
"""Random MDPs for each discount, and their sizes."""


def random_problems(purpose: str) -> Iterator[tuple[str, float, MDPs]]:
    """(name, discount, MDPs) for deterministic and stochastic dynamics and every discount."""
    generator = np.random.default_rng(derive_seed(0, purpose))
    for stochastic in (False, True):
        kind = "stochastic" if stochastic else "deterministic"
        for gamma in DISCOUNTS:
            mdps = random_mdps(COUNT, STATES, ACTIONS, stochastic, generator)
            yield f"{kind}, {gamma}", gamma, mdps


def triangle_table() -> Table:
    """Theorem 1 on random MDPs, and Q*(x, x) where one cannot stay."""
    rows = []
    for name, gamma, mdps in random_problems("triangle"):
        q = optimal_values(mdps, pair_rewards(mdps.pairs), gamma)
        own = np.diagonal(q, axis1=1, axis2=2)
        stays = mdps.can_stay
        rows.append(
            (
                name,
                f"{q.shape[0] * q.shape[1] ** 3:,}",
                str(broken_triples(q)),
                _number(largest_excess(q)),
                _number(own[stays].min()),
                _number(own[~stays].max()),
            )
        )
    heads = ("dynamics, discount", "triples", "broken", "largest excess, three different pairs")
    return (*heads, "lowest Q*(x, x), can stay", "highest Q*(x, x), cannot stay"), rows


def lifting_table() -> Table:
    """The lifting as printed and repaired, on the alternating states and on random MDPs."""
    rows = []
    for name, gamma, mdps in [("alternating, 0.5", 0.5, ALTERNATING), *random_problems("lift")]:
        q = optimal_values(mdps, pair_rewards(mdps.pairs), gamma)
        bound = -1 / (1 - gamma)
        variants = (lift(q, q, repaired=False), lift(q, q), lift(q, q, far=bound))
        triples = len(q) * variants[0].shape[-1] ** 3
        rows.append((name, f"{triples:,}", *(f"{broken_triples(v):,}" for v in variants)))
    printed = ("MDPs, discount", "triples", "broken, as printed", "broken, repaired")
    return (*printed, "broken, repaired, -1/(1-gamma) for -infinity"), rows


def goals_table() -> Table:
    """Q*(x, g) beside the best Q*(x, x'), M(x') = g, by what an optimal trajectory meets."""
    generator = np.random.default_rng(derive_seed(0, "goals"))
    problems = [("alternating, 0.98", 0.98, ALTERNATING, np.zeros((1, 2), dtype=int))]
    for gamma in DISCOUNTS:
        mdps = random_mdps(COUNT, STATES, ACTIONS, False, generator)
        goal_of = random_maps(COUNT, mdps.pairs, GOALS, generator)
        problems.append((f"deterministic, {gamma}", gamma, mdps, goal_of))
    rows = []
    for name, gamma, mdps, goal_of in problems:
        goals = goal_of.max() + 1
        q = optimal_values(mdps, pair_rewards(mdps.pairs), gamma)
        of_goals = optimal_values(mdps, goal_rewards(goal_of, goals), gamma)
        gap = of_goals - best_single_pair(q, goal_of, goals)
        met, only = goal_pairs_met(mdps, of_goals, goal_of)
        cases = (met <= 1, (met > 1) & only, (met > 1) & ~only)
        rows.append((name, *(_range(gap[case]) for case in cases)))
    heads = ("dynamics, discount", "at most one pair of the goal met")
    return (*heads, "several, and no other way is optimal", "several, other ways are too"), rows


def _range(gaps: Array) -> str:
    if not gaps.size:
        return "none"
    return f"{gaps.size:,} cases: {_number(gaps.min())} to {_number(gaps.max())}"


def _number(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}"  # no minus before a zero


def reward_table() -> Table:
    """What holds for general goals, and for the reward taken at the next state."""
    rows = []
    generator = np.random.default_rng(derive_seed(0, "maps"))
    for name, gamma, mdps in random_problems("reward"):
        goal_of = random_maps(COUNT, mdps.pairs, GOALS, generator)
        between, to_goals = pair_rewards(mdps.pairs), goal_rewards(goal_of, GOALS)
        q, of_goals = optimal_values(mdps, between, gamma), optimal_values(mdps, to_goals, gamma)
        later = next_state_values(q, between, gamma)
        goals_later = next_state_values(of_goals, to_goals, gamma)
        bound = -1 / (1 - gamma)
        rows.append(
            (
                name,
                f"{broken_triples(lift(q, of_goals, far=bound)):,}",
                f"{broken_triples(later):,}",
                _number(largest_excess(later)),
                f"{broken_triples(lift(q, goals_later, far=bound)):,}",
            )
        )
    heads = ("dynamics, discount", "broken on X and goals", "next-state reward: broken on X")
    return (*heads, "largest excess", "next-state reward: broken on X and goals"), rows


TABLES: dict[str, Callable[[], Table]] = {
    "triangle": triangle_table,
    "lifting": lifting_table,
    "goals": goals_table,
    "reward": reward_table,
    "axioms": axioms_table,
    "landmarks": landmarks_table,
}


def run(page: Path | None = None) -> list[Table]:
    """Make every table, and put them into the marked sections of a Markdown page, if given."""
    if page:
        require_sections(page, TABLES)
    tables = {name: make() for name, make in TABLES.items()}
    if page:
        write_sections(page, tables)
    return list(tables.values())
