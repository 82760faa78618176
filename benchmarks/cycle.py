"""Profile of one training cycle: FetchPush with MRN."""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from benchmarks.trainers import make_trainer
from mrn.envs import make_envs

CYCLES = 5


def measure(threads: int) -> dict[str, float]:
    """Return the share of each part. Shares add up to 1; `rest` is the remainder."""
    trainer = make_trainer("FetchPush")
    algorithm = trainer.agent.algorithm
    seconds: dict[str, float] = defaultdict(float)

    def count(owner: Any, method: str, part: str) -> None:
        """Add the time spent in a method to a part."""
        setattr(owner, method, _timed(getattr(owner, method), part, seconds))

    with make_envs(trainer.agent.spec, 20, "envpool", threads) as envs:
        for _ in range(2):
            trainer.collect(envs)
            trainer.learn()
        count(envs, "reset", "physics")
        count(envs, "step", "physics")
        count(trainer.agent, "explorer", "policy")
        explorer = trainer.agent.explorer
        trainer.agent.explorer = lambda *a: _timed(explorer(*a), "policy", seconds)  # type: ignore
        count(trainer.replay, "add", "storing")
        count(trainer.agent.normalizer, "update", "storing")
        count(algorithm.actor_target, "forward", "targets")
        count(algorithm.critic_target, "forward", "targets")
        count(algorithm, "compute_gradients", "gradients")
        for optimizer in algorithm.optimizers.values():
            count(optimizer, "step", "optimizer")
        count(algorithm, "end_cycle", "optimizer")
        count(trainer.hindsight, "sample", "sampling")
        count(trainer.agent.normalizer, "forward", "sampling")
        started = time.perf_counter()
        for _ in range(CYCLES):
            trainer.collect(envs)
            trainer.learn()
        total = time.perf_counter() - started
    seconds["gradients"] -= seconds["targets"]  # computed inside compute_gradients
    shares = {part: value / total for part, value in seconds.items()}
    return shares | {"rest": 1 - sum(shares.values())}


def _timed(call: Callable[..., Any], part: str, seconds: dict[str, float]) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        result = call(*args, **kwargs)
        seconds[part] += time.perf_counter() - started
        return result

    return timed
