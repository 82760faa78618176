"""Routes through the U-shaped maze that fail: `python -m scripts.maze RUN...`.

Groups episodes by the number of cells between start and goal along the U. For failed episodes the
table shows -Q at the last step. A ball that never reaches its goal costs 1 / (1 - discount); a
critic that predicts less takes a place behind the wall to be near. Writes
results/third-party-envs/routes.json.
"""

import sys
from collections.abc import Iterator

import numpy as np
import torch

import mrn
from mrn.agent import Agent
from mrn.studies.inspection.measure import distance
from mrn.training.evaluation import evaluation_envs
from mrn.training.rollout import iter_rollouts
from mrn.utils.device import torch_threads
from mrn.utils.errors import UserError, report_errors
from mrn.utils.tables import Table, print_table
from scripts.studies import ROOT, write_table

RESULTS = ROOT / "results" / "third-party-envs" / "routes.json"
EPISODES, SEED = 500, 7
CELLS = ((-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))
"""Centers of the cells of PointMaze_UMaze, from one end of the U to the other."""


def count_cells(start: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Return the number of cells between places of shape (N, 2), along the U."""
    centers = np.array(CELLS)  # (7, 2)
    index = [
        np.linalg.norm(place[:, None] - centers, axis=-1).argmin(axis=1) for place in (start, goal)
    ]
    return np.abs(index[0] - index[1])


def route_table(agents: list[Agent]) -> Table:
    """Return one row per route length, over all episodes of all agents."""
    cells, success, cost = (np.concatenate(part) for part in zip(*_episodes(agents), strict=True))
    rows = []
    for length in range(1, len(CELLS)):
        chosen = cells == length
        failed = chosen & ~success
        predicted = f"{cost[failed].mean():.0f}" if failed.any() else "-"
        rows.append((str(length), str(chosen.sum()), f"{success[chosen].mean():.0%}", predicted))
    return ("cells to the goal", "episodes", "success", "-Q of failed episodes"), rows


def _episodes(agents: list[Agent]) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield cells to the goal, success and -Q at the last step."""
    for agent in agents:
        last = agent.spec.horizon - 1
        with evaluation_envs(agent, EPISODES, SEED, "auto", 1) as envs, torch_threads(1):
            for episodes in iter_rollouts(envs, agent.act, EPISODES, SEED):
                goal = episodes.goal[:, 0]
                inputs = (episodes.state[:, last], episodes.action[:, last], goal)
                cost = distance(agent, *(torch.as_tensor(x, device=agent.device) for x in inputs))
                cells = count_cells(episodes.achieved[:, 0], goal)
                yield cells, episodes.success[:, last].copy(), cost.numpy(force=True)


def main(runs: list[str]) -> None:
    """Print and write the table.

    Raises:
        UserError: No run is given.
    """
    if not runs:
        raise UserError("give the runs to evaluate: python -m scripts.maze RUN...")
    table = route_table([mrn.load(run) for run in runs])
    print_table(table)
    write_table(RESULTS, table)


if __name__ == "__main__":
    with report_errors():
        main(sys.argv[1:])
