"""Environment steps per second: our rollout, bare EnvPool, one Gymnasium-Robotics process."""

import contextlib
from typing import Any

import envpool
import numpy as np

from benchmarks.measure import take_turns
from benchmarks.setting import CYCLE_EPISODES, make_trainer
from mrn.envs import TASKS, make_envs


def measure() -> dict[str, object]:
    """A cycle's episodes with policy, noise and storage, against the same steps without."""
    results: dict[str, object] = {}
    for task in ("FetchPush", "BlockRotateZ"):
        results[task] = {f"threads_{n}": compare(task, n, n == 2) for n in (1, 2)}
    share = min(results[task]["threads_2"]["share_of_envpool"] for task in results)  # type: ignore
    return results | {"share_of_envpool": share}


def compare(task: str, threads: int, with_gymnasium: bool, num_envs: int = CYCLE_EPISODES):
    """Steps per second of each, and our share of bare EnvPool's."""
    shape = TASKS[task].spec
    # Uniform actions (policy and noise run all the same), so that both simulate the same motion.
    trainer = make_trainer(task, episodes=num_envs, buffer_size=100_000, random_action_prob=1.0)
    with (
        make_envs(shape, num_envs, "envpool", threads) as ours,
        contextlib.closing(bare_pool(shape.env_id, num_envs, threads)) as bare,
    ):
        size = (shape.horizon, num_envs, shape.action_dim)
        random = np.random.default_rng(0).uniform(-1, 1, size)
        own_units = shape.to_bounds(random)

        def collect() -> None:
            trainer.collect(ours)
            trainer.cycle += 1  # or the next would begin the same episodes again

        candidates = {
            "ours": collect,
            "envpool": lambda: step_through(bare, own_units),
        }
        times = take_turns(candidates, repeats=5)
    steps = num_envs * shape.horizon
    result = {name: steps / timing.median for name, timing in times.items()}
    result["share_of_envpool"] = result["ours"] / result["envpool"]
    if with_gymnasium:
        with make_envs(shape, 2, "gymnasium") as process:
            process.reset(seed=0)
            timing = take_turns({"gymnasium": lambda: step_through(process, random[:, :2])}, 3)
        result["gymnasium"] = 2 * shape.horizon / timing["gymnasium"].median
        result["ours_over_gymnasium"] = result["ours"] / result["gymnasium"]
    return result


def bare_pool(env_id: str, num_envs: int, threads: int) -> Any:
    """EnvPool as it comes."""
    return envpool.make_gymnasium(env_id, num_envs=num_envs, num_threads=threads, seed=0)


def step_through(envs: Any, actions: np.ndarray) -> None:
    """One episode everywhere, with actions of shape (T, N, action)."""
    envs.reset()
    for action in actions:
        envs.step(action)
