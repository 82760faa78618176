"""Milliseconds per update of each algorithm, relative to DDPG with the same critic."""

from typing import Any

from benchmarks.timing import time_in_turns
from benchmarks.trainers import fill_replay, make_trainer, run_update
from mrn.algorithms import ALGORITHMS
from mrn.utils.naming import NO_CRITIC

CRITICS = ("mrn", "monolithic")


def measure() -> dict[str, Any]:
    """Measure on FetchPush: batches of 1024, 1e5 transitions stored."""
    times = {critic: compare(critic) for critic in CRITICS}
    slowest = {
        f"{name}_over_ddpg": max(times[critic][name]["over_ddpg"] for critic in CRITICS)
        for name in ALGORITHMS
    }
    return {"critics": times, **slowest}


def compare(critic: str) -> dict[str, dict[str, float]]:
    """Time all algorithms with one critic; 8 calls per turn are a multiple of policy delays."""
    candidates = {}
    for name, algorithm in ALGORITHMS.items():
        chosen = critic if algorithm.uses_critic else NO_CRITIC
        trainer = make_trainer("FetchPush", chosen, algo=name, buffer_size=100_000)
        fill_replay(trainer, 100_000)
        candidates[name] = lambda trainer=trainer: run_update(trainer)
    times = time_in_turns(candidates, repeats=9, calls=8)
    ddpg = times["ddpg"].median
    return {
        name: {"update_ms": timing.median * 1e3, "over_ddpg": timing.median / ddpg}
        for name, timing in times.items()
    }
