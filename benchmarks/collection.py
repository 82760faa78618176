"""Environment steps per second: our rollouts, bare EnvPool, one Gymnasium-Robotics process."""

import contextlib
from typing import Any

import envpool
import numpy as np

from benchmarks.timing import time_in_turns
from benchmarks.trainers import NUM_ENVS, make_trainer
from mrn.envs import TASKS, make_envs


def measure() -> dict[str, Any]:
    """Compare rollouts (policy, noise, storage) with the same steps of the bare simulators."""
    results: dict[str, Any] = {}
    for task in ("FetchPush", "BlockRotateZ"):
        results[task] = {f"threads_{n}": compare(task, n, n == 2) for n in (1, 2)}
    share = min(results[task]["threads_2"]["share_of_envpool"] for task in results)
    return results | {"share_of_envpool": share}


def compare(
    task: str, threads: int, with_gymnasium: bool, num_envs: int = NUM_ENVS
) -> dict[str, float]:
    """Return steps per second of each engine, and our share of bare EnvPool's."""
    spec = TASKS[task].spec
    # Uniform actions, so that both simulate the same motion; policy and noise still run.
    trainer = make_trainer(task, num_envs=num_envs, buffer_size=100_000, random_action_prob=1.0)
    with (
        make_envs(spec, num_envs, "envpool", threads) as ours,
        contextlib.closing(make_bare_pool(spec.env_id, num_envs, threads)) as bare,
    ):
        size = (spec.horizon, num_envs, spec.action_dim)
        actions = np.random.default_rng(0).uniform(-1, 1, size)
        scaled_actions = spec.to_bounds(actions)

        def collect() -> None:
            trainer.collect(ours)
            trainer.cycle += 1  # otherwise the next call repeats the same episodes

        candidates = {
            "ours": collect,
            "envpool": lambda: play_episode(bare, scaled_actions),
        }
        times = time_in_turns(candidates, repeats=5)
    steps = num_envs * spec.horizon
    result = {name: steps / timing.median for name, timing in times.items()}
    result["share_of_envpool"] = result["ours"] / result["envpool"]
    if with_gymnasium:
        with make_envs(spec, 2, "gymnasium") as process:
            process.reset(seed=0)
            timing = time_in_turns({"gymnasium": lambda: play_episode(process, actions[:, :2])}, 3)
        result["gymnasium"] = 2 * spec.horizon / timing["gymnasium"].median
        result["ours_over_gymnasium"] = result["ours"] / result["gymnasium"]
    return result


def make_bare_pool(env_id: str, num_envs: int, threads: int) -> Any:
    """Return EnvPool's environments without our wrappers."""
    return envpool.make_gymnasium(env_id, num_envs=num_envs, num_threads=threads, seed=0)


def play_episode(envs: Any, actions: np.ndarray) -> None:
    """Play one episode in every environment, with actions of shape (T, N, action)."""
    envs.reset()
    for action in actions:
        envs.step(action)
