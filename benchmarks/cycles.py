"""Minutes until FetchPush is solved, on one core: `python -m benchmarks.cycles`, 6 minutes.

How many cycles it takes is the same wherever a run is trained (results/fast, fast-ablation); how
long one takes is not. So cycles of both recipes, and of those ingredients that change what a cycle
costs, are timed here in turns, with nothing beside them. The seconds are kept in
benchmarks/results/cycles.json; the page of results/fast gets cycles, seconds and their product.
"""

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.measure import take_turns
from benchmarks.recipes import (
    ABLATION,
    BY_FAST,
    BY_PAPER,
    CHOSEN_ON,
    RESULTS,
    TASK,
    USUAL_LEVEL,
    Solved,
    runs_on_task,
    solved,
)
from benchmarks.setting import fill, make_trainer
from mrn.config import Config
from mrn.envs import GoalVectorEnv, make_envs
from mrn.training.trainer import Trainer
from mrn.utils.device import cpu_name, torch_threads, tune_allocator
from mrn.utils.errors import UserError, report_errors
from mrn.utils.files import write_atomically
from mrn.utils.tables import Table, markdown_table, print_table, require_sections, write_sections

TIMES = Path(__file__).parent / "results" / "cycles.json"
PAGE = RESULTS / "README.md"
TURNS, CYCLES, FILLED = 8, 3, 50_000
CANDIDATES: dict[str, tuple[Path, str, dict[str, Any]]] = {
    "paper": (RESULTS, BY_PAPER, {"recipe": "paper"}),
    "fast": (RESULTS, BY_FAST, {"recipe": "fast"}),
    "fast, num_envs=20": (ABLATION, f"{BY_FAST}+num_envs=20", {"recipe": "fast", "num_envs": 20}),
    "fast, policy_delay=1": (
        ABLATION,
        f"{BY_FAST}+policy_delay=1",
        {"recipe": "fast", "policy_delay": 1},
    ),
}
"""Where its runs are, the method, as they name it, and its settings."""


def main() -> None:
    """Time the cycles; print the table, and write it into the page."""
    with report_errors():
        tune_allocator()  # as a training does
        require_sections(PAGE, ["cycles"])
        reached()  # or say at once what is missing
        times = {"cpu": cpu_name(), "seconds": measure()}
        write_atomically(TIMES, (json.dumps(times, indent=2) + "\n").encode())
        print_table(table(times["seconds"]))
        write_sections(PAGE, {"cycles": section(times)})


def reached() -> dict[str, Solved]:
    """Where the mean over seeds is at 90 %, for each candidate.

    Raises:
        UserError: It is not, or there are no runs.
    """
    found = {}
    for name, (root, method, _) in CANDIDATES.items():
        runs = runs_on_task(root, method)[method]
        chosen = [run for run in runs if run.seed in CHOSEN_ON]
        place = solved(chosen, USUAL_LEVEL) if chosen else None
        if place is None:
            raise UserError(f"the runs of {method} are not at {USUAL_LEVEL:.0%} yet")
        found[name] = place
    return found


def measure() -> dict[str, list[float]]:
    """Seconds of a cycle: median and quartiles."""
    candidates = {}
    with ExitStack() as pools, torch_threads(1):
        for name, (*_, settings) in CANDIDATES.items():
            # Uniform first episodes cost less than the others, and are few.
            trainer = make_trainer(TASK, warmup_episodes=0, **settings)
            fill(trainer, FILLED)
            envs = make_envs(trainer.agent.spec, trainer.config.schedule.episodes)
            candidates[name] = _cycle(trainer, pools.enter_context(envs))
        return {name: list(each) for name, each in take_turns(candidates, TURNS, CYCLES).items()}


def _cycle(trainer: Trainer, envs: GoalVectorEnv) -> Callable[[], None]:
    def cycle() -> None:
        trainer.collect(envs)
        trainer.learn()

    return cycle


def section(times: dict[str, Any]) -> str:
    """What the page says of it."""
    return f"{times['cpu']}, one thread:\n\n{markdown_table(table(times['seconds']))}"


def table(seconds: dict[str, list[float]]) -> Table:
    """Cycles until the task is solved, seconds of one, and minutes of all."""
    heads = ("recipe", "steps", "cycles", "seconds of a cycle", "minutes", "ratio")
    rows, first = [], None
    for name, place in reached().items():
        updates = Config.of(TASK, **CANDIDATES[name][2]).schedule.updates
        cycles, (median, low, high) = place.updates // updates, seconds[name]
        minutes = cycles * median / 60
        first = first or minutes
        figures = (f"{place.steps:,}", str(cycles), f"{median:.2f} ({low:.2f} - {high:.2f})")
        rows.append((name, *figures, f"{minutes:.1f}", f"{minutes / first:.2f}"))
    return heads, rows


if __name__ == "__main__":
    main()
