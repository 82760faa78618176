"""Minutes until FetchPush is solved, on one core: `python -m benchmarks.cycles`, 6 minutes.

How many cycles it takes is the same wherever a run is trained (results/fast, fast-ablation); how
long one takes is not. So cycles of both recipes, and of those ingredients that change what a cycle
costs, are timed here in turns, with nothing beside them, and the page of results/fast gets cycles,
seconds and their product.
"""

from typing import Any

from benchmarks.measure import take_turns
from benchmarks.recipes import ABLATION, CHOSEN_ON, FAST, RESULTS, USUAL_LEVEL, solved
from benchmarks.setting import fill, make_trainer
from mrn.device import cpu_name, torch_threads
from mrn.envs import GoalVectorEnv, make_envs
from mrn.experiments.runs import find_runs, group
from mrn.tables import Table, markdown, show, with_section
from mrn.training.trainer import Trainer

TASK, TURNS, CYCLES, FILLED = "FetchPush", 8, 3, 50_000
CANDIDATES: dict[str, tuple[str, dict[str, Any]]] = {
    "paper": ("ddpg-mrn", {"recipe": "paper"}),
    "fast": (FAST, {"recipe": "fast"}),
    "fast, episodes=20": (f"{FAST}+episodes=20", {"recipe": "fast", "episodes": 20}),
    "fast, actor_every=1": (f"{FAST}+actor_every=1", {"recipe": "fast", "actor_every": 1}),
}
"""The method, as its runs name it, and its settings."""


def main() -> None:
    """Print the table, and write it into the page."""
    found = table()
    show(found)
    page = RESULTS / "README.md"
    text = f"{cpu_name()}, one thread:\n\n{markdown(found)}"
    page.write_text(with_section(page.read_text(), "cycles", text))


def table() -> Table:
    """Cycles until the mean over seeds is at 90 %, seconds of one, and minutes of all."""
    runs = group(find_runs(RESULTS))[""][TASK] | group(find_runs(ABLATION))[""][TASK]
    # Uniform first episodes cost less than the others, and are few.
    trainers = {
        name: make_trainer(TASK, random_episodes=0, **settings)
        for name, (_, settings) in CANDIDATES.items()
    }
    for trainer in trainers.values():
        fill(trainer, FILLED)
    pools = {
        name: make_envs(trainer.agent.shape, trainer.config.schedule.episodes)
        for name, trainer in trainers.items()
    }
    with torch_threads(1):
        timings = take_turns(
            {name: _cycle(trainers[name], pools[name]) for name in CANDIDATES}, TURNS, CYCLES
        )
    rows, first = [], None
    for name, trainer in trainers.items():
        pools[name].close()
        chosen = [run for run in runs[CANDIDATES[name][0]] if run.seed in CHOSEN_ON]
        found = solved(chosen, USUAL_LEVEL)
        if found is None:
            raise SystemExit(f"the runs of {name} are not at {USUAL_LEVEL:.0%}")
        cycles, timing = found.updates // trainer.config.schedule.updates, timings[name]
        minutes = cycles * timing.median / 60
        first = first or minutes
        spread = f"{timing.median:.2f} ({timing.low:.2f} - {timing.high:.2f})"
        figures = (f"{found.steps:,}", str(cycles), spread, f"{minutes:.1f}")
        rows.append((name, *figures, f"{minutes / first:.2f}"))
    heads = ("recipe", "steps", "cycles", "seconds of a cycle", "minutes", "ratio")
    return heads, rows


def _cycle(trainer: Trainer, envs: GoalVectorEnv):
    def cycle() -> None:
        trainer.collect(envs)
        trainer.learn()

    return cycle


if __name__ == "__main__":
    main()
