"""Milliseconds per update of each agent, beside DDPG's with the same critic."""

from typing import Any

from benchmarks.measure import take_turns
from benchmarks.setting import fill, make_trainer, one_update
from mrn.algorithms import ALGORITHMS
from mrn.utils.naming import NO_CRITIC

CRITICS = ("mrn", "monolithic")


def measure() -> dict[str, Any]:
    """FetchPush, batch 1024, 1e5 transitions stored; the agents take turns."""
    times = {critic: compare(critic) for critic in CRITICS}
    most = {
        f"{name}_over_ddpg": max(times[critic][name]["over_ddpg"] for critic in CRITICS)
        for name in ALGORITHMS
    }
    return {"critics": times, **most}


def compare(critic: str) -> dict[str, dict[str, float]]:
    """Of each agent with one critic; as many updates of each in a turn as delays divide."""
    candidates = {}
    for name, agent in ALGORITHMS.items():
        chosen = critic if agent.uses_critic else NO_CRITIC
        trainer = make_trainer("FetchPush", chosen, algo=name, buffer_size=100_000)
        fill(trainer, 100_000)
        candidates[name] = lambda trainer=trainer: one_update(trainer)
    times = take_turns(candidates, repeats=9, calls=8)
    ddpg = times["ddpg"].median
    return {
        name: {"update_ms": timing.median * 1e3, "over_ddpg": timing.median / ddpg}
        for name, timing in times.items()
    }
