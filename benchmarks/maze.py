"""Which ways through the U-shaped maze are not found: `python -m benchmarks.maze RUN...`.

Episodes by how many cells lie between start and goal along the U. For those that fail, what the
critic says at the end. A ball that never comes to its goal costs 1 / (1 - discount); a critic that
says less holds a place behind the wall for near. The page of results/others gets the table.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

import mrn
from mrn.agent import Agent
from mrn.studies.inspection.measure import distance
from mrn.training.evaluation import evaluation_envs
from mrn.training.rollout import iter_rollouts
from mrn.utils.device import torch_threads
from mrn.utils.tables import Table, print_table, write_sections

PAGE = Path(__file__).parents[1] / "results" / "others" / "README.md"
EPISODES, SEED = 500, 7
WAY = ((-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))
"""The cells of PointMaze_UMaze, from one end of the U to the other."""


def cells_apart(start: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Cells between places of shape (N, 2), along the U."""
    centres = np.array(WAY)  # (7, 2)
    number = [
        np.linalg.norm(place[:, None] - centres, axis=-1).argmin(axis=1) for place in (start, goal)
    ]
    return np.abs(number[0] - number[1])


def table(agents: list[Agent]) -> Table:
    """A line for each number of cells, over all episodes of all agents."""
    apart, success, cost = (np.concatenate(part) for part in zip(*_played(agents), strict=True))
    rows = []
    for cells in range(1, len(WAY)):
        here = apart == cells
        failed = here & ~success
        said = f"{cost[failed].mean():.0f}" if failed.any() else "-"
        rows.append((str(cells), str(here.sum()), f"{success[here].mean():.0%}", said))
    return ("cells to the goal", "episodes", "success", "-Q where it failed"), rows


def _played(agents: list[Agent]) -> Iterator[tuple[np.ndarray, ...]]:
    """Cells to the goal, success at the last step and -Q there, of some episodes each."""
    for agent in agents:
        last = agent.spec.horizon - 1
        with evaluation_envs(agent, EPISODES, SEED, "auto", 1) as envs, torch_threads(1):
            for played in iter_rollouts(envs, agent.act, EPISODES, SEED):
                goal = played.goal[:, 0]
                now = (played.state[:, last], played.action[:, last], goal)
                cost = distance(agent, *(torch.as_tensor(x, device=agent.device) for x in now))
                apart = cells_apart(played.achieved[:, 0], goal)
                yield apart, played.success[:, last].copy(), cost.numpy(force=True)


def main() -> None:
    """Print the table, and write it into the page."""
    found = table([mrn.load(run) for run in sys.argv[1:]])
    print_table(found)
    write_sections(PAGE, {"ways": found})


if __name__ == "__main__":
    main()
