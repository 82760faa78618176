"""What resting saves where episodes end early: `python -m benchmarks.resting`, 2 minutes.

A vector of environments has one clock, so one whose episode is over waits until all are.
Gymnasium's rest meanwhile and are not simulated (`mrn.envs.wrappers.FreezeWhenDone`). The same episodes
are played here with and without that, in turns, and docs/your-own-environment.md gets the table.
EnvPool's cannot rest: of them it says how many steps would be to be saved.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.measure import take_turns
from mrn.envs import GoalVectorEnv, Observation, TaskSpec, find_task, make_envs
from mrn.envs.gymnasium_engine import GymnasiumEnv
from mrn.envs.wrappers import FreezeWhenDone
from mrn.replay import Episodes
from mrn.training.rollout import Policy, collect_episodes
from mrn.utils.device import cpu_name
from mrn.utils.tables import Table, markdown_table, print_table, require_sections, write_sections

PAGE = Path(__file__).parents[1] / "docs" / "your-own-environment.md"
PANDA, NATIVE = "panda_gym:PandaReach-v3", ("FetchReach", "PointMaze_UMaze")
NUM_ENVS, ROUNDS, TURNS, SEED = 10, 4, 5, 7
WALKERS = (0, 5, 10)
"""How many of the environments walk straight to their goals, where PandaReach ends."""


def walking(shape: TaskSpec, walkers: int) -> Policy:
    """The first environments walk straight to the goal, the others act at random."""
    rng = np.random.default_rng(SEED)

    def act(observation: Observation) -> np.ndarray:
        action = rng.uniform(-1, 1, (len(observation.goal), shape.action_dim))
        way = 10 * (observation.goal - observation.achieved)[:walkers]  # (W, goal)
        action[:walkers] = 0
        action[:walkers, : way.shape[1]] = way.clip(-1, 1)
        return action

    return act


def never_resting(shape: TaskSpec, num_envs: int) -> GoalVectorEnv:
    """Gymnasium's environments as they would be without rest: stepped on, into another episode."""
    envs = make_envs(shape, num_envs, "gymnasium")
    assert isinstance(envs, GymnasiumEnv)
    assert all(isinstance(env, FreezeWhenDone) for env in envs.envs.envs)
    envs.envs.envs = tuple(env.env for env in envs.envs.envs)
    return envs


def lengths(envs: GoalVectorEnv, walkers: int, rounds: int) -> np.ndarray:
    """Play the same episodes at every call; how long each was, of shape (rounds, N)."""
    policy = walking(envs.task, walkers)
    into = Episodes.allocate(envs.task, envs.num_envs)
    return np.stack(
        [
            collect_episodes(envs, policy, into, SEED, number).length.copy()
            for number in range(rounds)
        ]
    )


def counted(length: np.ndarray) -> tuple[int, int]:
    """Steps within episodes, and all steps: every round goes on until its last episode ends."""
    return int(length.sum()), int(length.max(axis=1).sum()) * length.shape[1]


def table() -> Table:
    """PandaReach with and without rest; tasks on EnvPool."""
    heads = (
        "task",
        "engine",
        "walk to the goal",
        "steps that count",
        "resting",
        "stepped on",
        "ratio",
    )
    rows = []
    shape = find_task(PANDA).spec
    with make_envs(shape, NUM_ENVS, "gymnasium") as rest, never_resting(shape, NUM_ENVS) as on:
        for walkers in WALKERS:
            found = lengths(rest, walkers, ROUNDS)
            assert np.array_equal(found, lengths(on, walkers, ROUNDS))  # they play the same
            times = take_turns(
                {"rest": _playing(rest, walkers), "on": _playing(on, walkers)}, TURNS
            )
            seconds = [f"{t.median:.2f} s ({t.low:.2f} - {t.high:.2f})" for t in times.values()]
            ratio = times["rest"].median / times["on"].median
            rows.append((*_row("PandaReach", rest, walkers, found), *seconds, f"{ratio:.2f}"))
    for name in NATIVE:
        with make_envs(find_task(name).spec, NUM_ENVS, "envpool") as pool:
            found = lengths(pool, WALKERS[1], 1)
            rows.append((*_row(name, pool, WALKERS[1], found), "", "", ""))
    return heads, rows


def _playing(envs: GoalVectorEnv, walkers: int) -> Callable[[], object]:
    return lambda: lengths(envs, walkers, ROUNDS)


def _row(name: str, envs: GoalVectorEnv, walkers: int, length: np.ndarray) -> tuple[str, ...]:
    within, clock = counted(length)
    return name, envs.engine, f"{walkers} of {NUM_ENVS}", f"{within:,} of {clock:,}"


def main() -> None:
    """Print the table, and write it into the page."""
    require_sections(PAGE, ["resting"])
    found = table()
    print_table(found)
    text = f"{cpu_name()}, one thread, {NUM_ENVS * ROUNDS} episodes:\n\n{markdown_table(found)}"
    write_sections(PAGE, {"resting": text})


if __name__ == "__main__":
    main()
