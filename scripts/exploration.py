"""How often exploration moves the object: what is achieved differs at an episode's start and end.

`python -m scripts.exploration`, 3 minutes: an untrained policy with exploration noise, and uniform
actions, which the recipe `fast` starts with. Writes results/fast-recipe/exploration.json.
`python -m scripts.exploration RUNS`: every 100 episodes of runs that still have checkpoints.
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
from mrn.utils.tables import Table, print_table
from scripts.studies import ROOT, write_table

RESULTS = ROOT / "results" / "fast-recipe" / "exploration.json"
TASKS = ("FetchPush", "FetchPick", "FetchSlide")
NUM_ENVS, CYCLES, SEED = 100, 5, 7


def count_moved(task_name: str, warmup_episodes: int) -> tuple[int, int]:
    """Return the episodes of an untrained agent in which the object moved, and all episodes."""
    settings = {"num_envs": NUM_ENVS, "cycles": CYCLES, "warmup_episodes": warmup_episodes}
    config = Config.of(task_name, recipe="fast", seed=SEED, **settings)
    task = find_task(task_name)
    trainer = Trainer(config, task, torch.device("cpu"))
    with make_envs(task.spec, NUM_ENVS) as envs:
        for trainer.cycle in range(CYCLES):
            trainer.collect(envs)
    first, _ = trainer.replay.episodes_since(0)
    return int(trainer.hindsight.moved(first % trainer.replay.rows).sum()), len(first)


def exploration_table() -> Table:
    """Return the share of episodes in percent, with its 95% Wilson interval."""
    rows = []
    for task in TASKS:
        shares = [wilson(*count_moved(task, count)) for count in (0, NUM_ENVS * CYCLES)]
        cells = (f"{100 * s.value:.1f} [{100 * s.low:.1f}, {100 * s.high:.1f}]" for s in shares)
        rows.append((task, *cells))
    return ("task", "untrained policy with noise", "uniform actions"), rows


def table_of_runs(folder: Path) -> Table:
    """Return the share of all episodes of each run, and of every 100 episodes, in percent."""
    rows = []
    for run in sorted(path.parent for path in folder.rglob(CONFIG)):
        task = find_task(read_config(run, trust_code=False).task)
        parts = [load_file(file) for file in sorted((run / CHECKPOINTS).glob("replay-*"))]
        achieved, start, end = (
            torch.cat([part[name] for part in parts])
            for name in ("achieved", "since_start", "until_end")
        )
        moved = task.reward(achieved[start == 0], achieved[end == 0]) < 0
        shares = [f"{100 * part.float().mean():.0f}" for part in (moved, *moved.split(100))]
        rows.append((str(run.relative_to(folder)), shares[0], " ".join(shares[1:])))
    return ("run", "all episodes", "every 100 episodes"), rows


if __name__ == "__main__":
    if sys.argv[1:]:
        print_table(table_of_runs(Path(sys.argv[1])))
    else:
        untrained = exploration_table()
        print_table(untrained)
        write_table(RESULTS, untrained)
