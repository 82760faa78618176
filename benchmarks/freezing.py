"""Time saved by freezing finished environments: `python -m benchmarks.freezing`, 2 minutes.

Vectorized environments share one clock: an environment whose episode is over waits for the others.
Gymnasium's are frozen meanwhile and not simulated (`mrn.envs.wrappers.FreezeWhenDone`). The same
episodes are played here with and without freezing. EnvPool's environments cannot be frozen; the
table shows how many of their steps count. Writes benchmarks/results/freezing.json.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import time_in_turns
from mrn.envs import GoalVectorEnv, Observation, TaskSpec, find_task, make_envs
from mrn.envs.gymnasium_engine import GymnasiumEnv
from mrn.envs.wrappers import FreezeWhenDone
from mrn.replay import Episodes
from mrn.training.rollout import Policy, collect_episodes
from mrn.utils.device import cpu_name
from mrn.utils.files import write_atomically
from mrn.utils.tables import Table, print_table

RESULTS = Path(__file__).parent / "results" / "freezing.json"
PANDA, NATIVE = "panda_gym:PandaReach-v3", ("FetchReach", "PointMaze_UMaze")
NUM_ENVS, ROUNDS, TURNS, SEED = 10, 4, 5, 7
GREEDY = (0, 5, 10)
"""Environments that move straight to the goal, where episodes of PandaReach end."""


def make_policy(spec: TaskSpec, greedy: int) -> Policy:
    """Return a policy: the first environments move straight to the goal, the others at random."""
    rng = np.random.default_rng(SEED)

    def act(observation: Observation) -> np.ndarray:
        action = rng.uniform(-1, 1, (len(observation.goal), spec.action_dim))
        direction = 10 * (observation.goal - observation.achieved)[:greedy]  # (G, goal)
        action[:greedy] = 0
        action[:greedy, : direction.shape[1]] = direction.clip(-1, 1)
        return action

    return act


def make_unfrozen_envs(spec: TaskSpec, num_envs: int) -> GoalVectorEnv:
    """Return Gymnasium environments that step on into the next episode instead of freezing."""
    envs = make_envs(spec, num_envs, "gymnasium")
    assert isinstance(envs, GymnasiumEnv)
    assert all(isinstance(env, FreezeWhenDone) for env in envs.envs.envs)
    envs.envs.envs = tuple(env.env for env in envs.envs.envs)
    return envs


def episode_lengths(envs: GoalVectorEnv, greedy: int, rounds: int) -> np.ndarray:
    """Play the same episodes at every call and return their lengths, shape (rounds, N)."""
    policy = make_policy(envs.task, greedy)
    into = Episodes.allocate(envs.task, envs.num_envs)
    return np.stack(
        [
            collect_episodes(envs, policy, into, SEED, number).length.copy()
            for number in range(rounds)
        ]
    )


def count_steps(length: np.ndarray) -> tuple[int, int]:
    """Return the steps within episodes, and all steps until the last episode of each round."""
    return int(length.sum()), int(length.max(axis=1).sum()) * length.shape[1]


def measure() -> list[dict[str, Any]]:
    """Measure PandaReach with and without freezing, and count the steps of EnvPool's tasks."""
    rows = []
    spec = find_task(PANDA).spec
    with (
        make_envs(spec, NUM_ENVS, "gymnasium") as frozen,
        make_unfrozen_envs(spec, NUM_ENVS) as unfrozen,
    ):
        for greedy in GREEDY:
            lengths = episode_lengths(frozen, greedy, ROUNDS)
            assert np.array_equal(lengths, episode_lengths(unfrozen, greedy, ROUNDS))
            candidates = {"frozen": _player(frozen, greedy), "unfrozen": _player(unfrozen, greedy)}
            times = {name: list(t) for name, t in time_in_turns(candidates, TURNS).items()}
            rows.append(_row("PandaReach", frozen, greedy, lengths) | times)
    for name in NATIVE:
        with make_envs(find_task(name).spec, NUM_ENVS, "envpool") as pool:
            rows.append(_row(name, pool, GREEDY[1], episode_lengths(pool, GREEDY[1], 1)))
    return rows


def _player(envs: GoalVectorEnv, greedy: int) -> Callable[[], object]:
    return lambda: episode_lengths(envs, greedy, ROUNDS)


def _row(task: str, envs: GoalVectorEnv, greedy: int, length: np.ndarray) -> dict[str, Any]:
    counted, total = count_steps(length)
    place = {"task": task, "engine": envs.engine, "greedy": greedy}
    return place | {"counted": counted, "total": total}


def table(results: dict[str, Any]) -> Table:
    """Return the measurements as a table."""
    heads = ("task", "engine", "greedy envs", "steps that count", "frozen", "not frozen", "ratio")
    rows = []
    for row in results["rows"]:
        cells = [row["task"], row["engine"], f"{row['greedy']} of {NUM_ENVS}"]
        cells.append(f"{row['counted']:,} of {row['total']:,}")
        if "frozen" in row:
            times = (row["frozen"], row["unfrozen"])
            cells += [f"{median:.2f} s ({low:.2f} - {high:.2f})" for median, low, high in times]
            cells.append(f"{times[0][0] / times[1][0]:.2f}")
        rows.append((*cells, *[""] * (len(heads) - len(cells))))
    return heads, rows


def main() -> None:
    """Measure, print and write."""
    results = {"cpu": cpu_name(), "rows": measure()}
    write_atomically(RESULTS, (json.dumps(results, indent=2) + "\n").encode())
    print_table(table(results))


if __name__ == "__main__":
    main()
