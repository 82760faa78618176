"""Seconds per training cycle of the recipes: `python -m benchmarks.recipe_cycles`, 6 minutes.

The number of cycles until FetchPush is solved does not depend on the machine; the duration of a
cycle does. Both recipes, and the ablations that change the cost of a cycle, alternate here on one
thread. Writes benchmarks/results/recipe_cycles.json; `make pages` updates the table.
"""

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.timing import time_in_turns
from benchmarks.trainers import fill_replay, make_trainer
from mrn.envs import GoalVectorEnv, make_envs
from mrn.training.trainer import Trainer
from mrn.utils.device import cpu_name, torch_threads, tune_allocator
from mrn.utils.files import write_atomically

RESULTS = Path(__file__).parent / "results" / "recipe_cycles.json"
TASK = "FetchPush"
TURNS, CYCLES, STORED = 8, 3, 50_000
CANDIDATES: dict[str, dict[str, Any]] = {
    "paper": {"recipe": "paper"},
    "fast": {"recipe": "fast", "policy_delay": 2},
    "20-envs": {"recipe": "fast", "num_envs": 20, "policy_delay": 2},
    "no-policy-delay": {"recipe": "fast"},
}
"""Settings by recipe, or by variant of the recipe `fast`, as in results/fast-recipe."""


def main() -> None:
    """Measure, print and write the seconds per cycle."""
    tune_allocator()  # as training does
    seconds = measure()
    results = {"cpu": cpu_name(), "seconds": seconds}
    write_atomically(RESULTS, (json.dumps(results, indent=2) + "\n").encode())
    for name, (median, low, high) in seconds.items():
        print(f"{name}: {median:.2f} s ({low:.2f} - {high:.2f})")


def measure() -> dict[str, list[float]]:
    """Return median and quartiles of the seconds per cycle."""
    candidates = {}
    with ExitStack() as pools, torch_threads(1):
        for name, settings in CANDIDATES.items():
            # Warmup episodes are few and cheaper than others.
            trainer = make_trainer(TASK, **{"warmup_episodes": 0} | settings)
            fill_replay(trainer, STORED)
            envs = make_envs(trainer.agent.spec, trainer.config.schedule.num_envs)
            candidates[name] = _cycle(trainer, pools.enter_context(envs))
        return {name: list(each) for name, each in time_in_turns(candidates, TURNS, CYCLES).items()}


def _cycle(trainer: Trainer, envs: GoalVectorEnv) -> Callable[[], None]:
    def cycle() -> None:
        trainer.collect(envs)
        trainer.learn()

    return cycle


if __name__ == "__main__":
    main()
