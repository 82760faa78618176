"""Tables of `mrn theory`: checks of the paper's theory (docs/theory.md)."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from mrn.studies.theory.approximation import axioms_table, landmarks_table
from mrn.studies.theory.checks import (
    ALTERNATING,
    best_single_pair,
    count_violations,
    largest_excess,
    lift,
    visited_goal_pairs,
)
from mrn.studies.theory.mdp import (
    Array,
    MDPs,
    goal_rewards,
    next_state_values,
    optimal_values,
    pair_rewards,
    random_goal_maps,
    random_mdps,
)
from mrn.utils.device import torch_threads
from mrn.utils.seeding import derive_seed
from mrn.utils.tables import Table, require_sections, write_sections

DISCOUNTS = (0.5, 0.9, 0.98)
NUM_MDPS, NUM_STATES, NUM_ACTIONS, NUM_GOALS = 100, 6, 3, 5
"""Number of random MDPs per row, and their sizes."""


def random_problems(purpose: str) -> Iterator[tuple[str, float, MDPs]]:
    """Yield (name, discount, MDPs) for both kinds of dynamics and every discount."""
    generator = np.random.default_rng(derive_seed(0, purpose))
    for stochastic in (False, True):
        dynamics = "stochastic" if stochastic else "deterministic"
        for gamma in DISCOUNTS:
            mdps = random_mdps(NUM_MDPS, NUM_STATES, NUM_ACTIONS, stochastic, generator)
            yield f"{dynamics}, {gamma}", gamma, mdps


def triangle_table() -> Table:
    """Check Theorem 1 on random MDPs, and Q*(x, x) with and without a self-loop."""
    rows = []
    for name, gamma, mdps in random_problems("triangle"):
        q = optimal_values(mdps, pair_rewards(mdps.pairs), gamma)
        self_values = np.diagonal(q, axis1=1, axis2=2)
        self_loop = mdps.is_self_loop
        rows.append(
            (
                name,
                f"{q.shape[0] * q.shape[1] ** 3:,}",
                str(count_violations(q)),
                _format(largest_excess(q)),
                _format(self_values[self_loop].min()),
                _format(self_values[~self_loop].max()),
            )
        )
    columns = ("dynamics, discount", "triples", "violations", "max excess, distinct pairs")
    return (*columns, "min Q*(x, x), self-loop", "max Q*(x, x), no self-loop"), rows


def lifting_table() -> Table:
    """Check the lifting, as printed and repaired, on the alternating and on random MDPs."""
    rows = []
    for name, gamma, mdps in [("alternating, 0.5", 0.5, ALTERNATING), *random_problems("lift")]:
        q = optimal_values(mdps, pair_rewards(mdps.pairs), gamma)
        bound = -1 / (1 - gamma)
        variants = (lift(q, q, repaired=False), lift(q, q), lift(q, q, exit_value=bound))
        triples = len(q) * variants[0].shape[-1] ** 3
        rows.append((name, f"{triples:,}", *(f"{count_violations(v):,}" for v in variants)))
    columns = ("MDPs, discount", "triples", "violations, as printed", "violations, repaired")
    return (*columns, "violations, repaired, -1/(1-gamma) for -infinity"), rows


def goals_table() -> Table:
    """Compare Q*(x, g) with the best Q*(x, x'), M(x') = g, by the goal pairs visited."""
    generator = np.random.default_rng(derive_seed(0, "goals"))
    problems = [("alternating, 0.98", 0.98, ALTERNATING, np.zeros((1, 2), dtype=int))]
    for gamma in DISCOUNTS:
        mdps = random_mdps(NUM_MDPS, NUM_STATES, NUM_ACTIONS, False, generator)
        goal_of = random_goal_maps(NUM_MDPS, mdps.pairs, NUM_GOALS, generator)
        problems.append((f"deterministic, {gamma}", gamma, mdps, goal_of))
    rows = []
    for name, gamma, mdps, goal_of in problems:
        goals = goal_of.max() + 1
        q = optimal_values(mdps, pair_rewards(mdps.pairs), gamma)
        goal_values = optimal_values(mdps, goal_rewards(goal_of, goals), gamma)
        gap = goal_values - best_single_pair(q, goal_of, goals)
        visited, unique = visited_goal_pairs(mdps, goal_values, goal_of)
        cases = (visited <= 1, (visited > 1) & unique, (visited > 1) & ~unique)
        rows.append((name, *(_format_range(gap[case]) for case in cases)))
    columns = ("dynamics, discount", "at most one goal pair visited")
    return (*columns, "several, unique optimum", "several, other optima"), rows


def _format_range(gaps: Array) -> str:
    if not gaps.size:
        return "none"
    return f"{gaps.size:,} cases: {_format(gaps.min())} to {_format(gaps.max())}"


def _format(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}"  # avoid -0.000


def reward_table() -> Table:
    """Check the triangle inequality for general goals and for the next-state reward."""
    rows = []
    generator = np.random.default_rng(derive_seed(0, "maps"))
    for name, gamma, mdps in random_problems("reward"):
        goal_of = random_goal_maps(NUM_MDPS, mdps.pairs, NUM_GOALS, generator)
        to_pairs, to_goals = pair_rewards(mdps.pairs), goal_rewards(goal_of, NUM_GOALS)
        q = optimal_values(mdps, to_pairs, gamma)
        goal_values = optimal_values(mdps, to_goals, gamma)
        next_q = next_state_values(q, to_pairs, gamma)
        next_goal_values = next_state_values(goal_values, to_goals, gamma)
        bound = -1 / (1 - gamma)
        rows.append(
            (
                name,
                f"{count_violations(lift(q, goal_values, exit_value=bound)):,}",
                f"{count_violations(next_q):,}",
                _format(largest_excess(next_q)),
                f"{count_violations(lift(q, next_goal_values, exit_value=bound)):,}",
            )
        )
    columns = ("dynamics, discount", "violations on X and goals")
    next_state = ("violations on X", "max excess on X", "violations on X and goals")
    return (*columns, *(f"next-state reward: {column}" for column in next_state)), rows


TABLES: dict[str, Callable[[], Table]] = {
    "triangle": triangle_table,
    "lifting": lifting_table,
    "goals": goals_table,
    "reward": reward_table,
    "axioms": axioms_table,
    "landmarks": landmarks_table,
}


def run(
    page: Path | None = None,
    begin: Callable[[str], None] = lambda title: None,
    show: Callable[[Table], None] = lambda table: None,
) -> None:
    """Compute every table, and write them to the marked sections of a Markdown page, if given.

    Args:
        page: The page.
        begin: Receives the title of each table before its computation.
        show: Receives each table.
    """
    if page:
        require_sections(page, TABLES)
    tables = {}
    with torch_threads(1):  # the networks are small
        for name, compute in TABLES.items():
            begin(f"{name}: {(compute.__doc__ or '').partition('. ')[0]}")
            tables[name] = compute()
            show(tables[name])
    if page:
        write_sections(page, tables)
