"""Frozen and unfrozen environments play the same episodes at different cost."""

import json
from unittest.mock import Mock

import numpy as np
import pytest

from benchmarks import freezing
from mrn.envs import find_task, make_envs

STORED = json.loads(freezing.RESULTS.read_text())


def test_frozen_and_unfrozen_play_the_same_episodes_at_different_cost():
    spec = find_task("tests.envs.custom_envs:EndsAtGoal-v0").spec
    simulated, played = [], []
    for make in (lambda *what: make_envs(*what, "gymnasium"), freezing.make_unfrozen_envs):
        with make(spec, 4) as envs:
            steps = [Mock(wraps=env.unwrapped.step) for env in envs.envs.envs]
            for env, step in zip(envs.envs.envs, steps, strict=True):
                env.unwrapped.step = step
            played.append(freezing.episode_lengths(envs, greedy=4, rounds=3))
            simulated.append(sum(step.call_count for step in steps))
    assert len({*played[0].flat}) > 1
    assert (played[0] == played[1]).all()
    counted, total = freezing.count_steps(played[0])
    assert simulated[0] == counted
    assert counted < simulated[1] < total  # Gymnasium only resets at the start of an episode


def test_steps_are_counted_within_episodes_and_until_the_last_one_ends():
    length = np.array([[3, 5, 2], [4, 4, 4]])
    assert freezing.count_steps(length) == (22, 15 + 12)


def test_table_computes_ratios_from_the_stored_seconds():
    _, rows = freezing.table(STORED)
    panda = [row for row in rows if row[0] == "PandaReach"]
    assert len(panda) == len(freezing.GREEDY)
    for row in panda:
        frozen, unfrozen = (float(cell.split()[0]) for cell in row[4:6])
        assert float(row[6]) == pytest.approx(frozen / unfrozen, abs=0.02)


def test_stored_step_counts_are_reproducible():
    pytest.importorskip("panda_gym")
    with make_envs(find_task(freezing.PANDA).spec, freezing.NUM_ENVS) as envs:
        counts = freezing.count_steps(freezing.episode_lengths(envs, 5, freezing.ROUNDS))
    (stored,) = [row for row in STORED["rows"] if row["greedy"] == 5 and "frozen" in row]
    assert (stored["counted"], stored["total"]) == counts
