"""How often something moves: where what was achieved at an episode's end was not at its start.

`python -m benchmarks.moved`, 3 minutes: before anything is learned, by the policy's own exploration
and by uniform actions, which the recipe fast begins with. `python -m benchmarks.moved RUNS`: in
runs that still have their checkpoints, in steps of 100 episodes.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

from mrn.config import Config
from mrn.envs import find_task, make_envs
from mrn.runs.layout import CHECKPOINTS, CONFIG
from mrn.runs.provenance import read_config
from mrn.training.trainer import Trainer
from mrn.utils.intervals import wilson
from mrn.utils.tables import Table, print_table, write_sections

PAGE = Path(__file__).parents[1] / "docs" / "recipes.md"
TASKS = ("FetchPush", "FetchPick", "FetchSlide")
EPISODES, ROUNDS, SEED = 100, 5, 7


def measure(task_name: str, warmup_episodes: int) -> tuple[int, int]:
    """Episodes in which something moved, and all of them, of an untrained agent."""
    settings = {"episodes": EPISODES, "cycles": ROUNDS, "warmup_episodes": warmup_episodes}
    config = Config.of(task_name, recipe="fast", seed=SEED, **settings)
    task = find_task(task_name)
    trainer = Trainer(config, task, torch.device("cpu"))
    with make_envs(task.spec, EPISODES) as envs:
        for trainer.cycle in range(ROUNDS):
            trainer.collect(envs)
    first, _ = trainer.replay.episodes_since(0)
    return int(trainer.hindsight.moved(first).sum()), len(first)


def table() -> Table:
    """The share of each, in percent, with its 95 % interval."""
    rows = []
    for task in TASKS:
        found = [wilson(*measure(task, count)) for count in (0, EPISODES * ROUNDS)]
        shares = (f"{100 * s.value:.1f} [{100 * s.low:.1f}, {100 * s.high:.1f}]" for s in found)
        rows.append((task, *shares))
    return ("task", "the untrained policy with its noise", "uniform actions"), rows


def table_of_runs(folder: Path) -> Table:
    """The share in all episodes of each run's replay, and in each 100 of them, in percent."""
    rows = []
    for run in sorted(path.parent for path in folder.rglob(CONFIG)):
        task = find_task(read_config(run).task)
        parts = [load_file(file) for file in sorted((run / CHECKPOINTS).glob("replay-*"))]
        achieved, start, end = (
            torch.cat([part[name] for part in parts])
            for name in ("achieved", "since_start", "until_end")
        )
        moved = task.reward(achieved[start == 0], achieved[end == 0]) < 0
        shares = [f"{100 * part.float().mean():.0f}" for part in (moved, *moved.split(100))]
        rows.append((str(run.relative_to(folder)), shares[0], " ".join(shares[1:])))
    return ("run", "all", "each 100 episodes"), rows


if __name__ == "__main__":
    if sys.argv[1:]:
        print_table(table_of_runs(Path(sys.argv[1])))
    else:
        untrained = table()
        print_table(untrained)
        write_sections(PAGE, {"moved": untrained})
