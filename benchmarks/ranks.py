"""One run on two ranks: `python -m benchmarks.ranks`, 4 minutes.

Cycles of FetchPush under the paper's protocol (20 episodes, then 40 updates of 1,024) with a filled
replay buffer: one rank with one and with two threads, and two ranks with one thread each. The
candidates alternate, each in new processes. The speed of more ranks is computed from the times on
one thread and an assumed network. Writes benchmarks/results/ranks.json.
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.trainers import CPU, fill_replay, make_trainer, run_update
from mrn.config import Config
from mrn.distributed import Ranks, join_ranks
from mrn.envs import TASKS, make_envs
from mrn.training.trainer import Trainer
from mrn.utils.device import cpu_name, torch_threads, tune_allocator
from mrn.utils.files import write_atomically
from mrn.utils.tables import Table, print_table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "ranks.json"
TASK, TURNS, CYCLES, STORED = "FetchPush", 3, 6, 50_000
EPISODES, UPDATES, BATCH, STEPS = 20, 40, 1024, 1000
CANDIDATES = {"1 rank, 1 thread": (1, 1), "1 rank, 2 threads": (1, 2)}
CANDIDATES |= {"2 ranks, 1 thread each": (2, 1)}
"""Ranks and threads of each."""
RANKS = (1, 2, 4, 8, 16)
"""Ranks, one core each, of the computed table."""
BANDWIDTH, LATENCY = 10e9 / 8, 50e-6
"""Bytes per second and seconds per message of the assumed network: 10 Gbit/s."""


def main() -> None:
    """Measure, print and write."""
    tune_allocator()
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in CANDIDATES}
    for _ in range(TURNS):
        for name, (ranks, threads) in CANDIDATES.items():
            measured[name].append(_launch(ranks, threads))
    results: dict[str, Any] = {
        name: {key: statistics.median(turn[key] for turn in turns) for key in turns[0]}
        for name, turns in measured.items()
    }
    results["update_seconds"] = {
        str(BATCH // count): _update_seconds(BATCH // count) for count in RANKS
    }
    results["gradient_megabytes"], results["cpu"] = _gradient_bytes() / 1e6, cpu_name()
    write_atomically(RESULTS, (json.dumps(results, indent=2) + "\n").encode())
    for table in tables(results).values():
        print_table(table)


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Return the measured and the computed table, by section of docs/scale.md."""
    single = results["1 rank, 1 thread"]
    rows = []
    for name in CANDIDATES:
        one = results[name]
        cells = (f"{STEPS / one['rollout']:,.0f}", f"{UPDATES / one['update']:.1f}")
        low, high = (one[f"{end}_communication"] / one["cycle"] for end in ("least", "most"))
        speed = f"{single['cycle'] / one['cycle']:.2f}"
        rows.append((name, *cells, f"{one['cycle']:.2f}", speed, f"{low:.1%} - {high:.1%}"))
    heads = ("", "steps per second", "updates per second", "seconds per cycle", "speedup")
    measured = ((*heads, "communication"), rows)
    computed = []
    for count in RANKS:
        update = results["update_seconds"][str(BATCH // count)]
        exchange = _all_reduce(results["gradient_megabytes"] * 1e6, count)
        cycle = single["rollout"] / count + UPDATES * (update + exchange)
        first = single["rollout"] + UPDATES * results["update_seconds"][str(BATCH)]
        cells = (f"{update * 1e3:.1f}", f"{exchange * 1e3:.1f}", f"{cycle:.2f}")
        computed.append((str(count), str(BATCH // count), *cells, f"{first / cycle:.1f}"))
    heads = ("ranks", "batch per rank", "ms per update (measured)", "ms per all-reduce")
    return {
        "measured": measured,
        "computed": ((*heads, "seconds per cycle", "speedup"), computed),
    }


def _all_reduce(size: float, ranks: int) -> float:
    """Return the seconds of a ring all-reduce: 2 (n - 1) steps, each 1 / n of the bytes."""
    hops = 2 * (ranks - 1)
    return hops / ranks * size / BANDWIDTH + hops * LATENCY


def _gradient_bytes() -> int:
    optimizers = make_trainer(TASK).agent.algorithm.optimizers.values()
    return sum(weight.nbytes for optimizer in optimizers for weight in optimizer.weights)


def _update_seconds(batch: int) -> float:
    trainer = make_trainer(TASK, batch_size=batch)
    fill_replay(trainer, STORED)
    with torch_threads(1):
        return statistics.median(_seconds(lambda: run_update(trainer)) for _ in range(60))


def _seconds(call: Any) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _launch(ranks: int, threads: int) -> dict[str, float]:
    """Run one turn in new processes and return its times."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    command = [sys.executable, *launch, "-m", "benchmarks.ranks", str(threads)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return json.loads(done.stdout.splitlines()[-1])


def run_rank(threads: int) -> None:
    """Run one rank of a turn; rank 0 prints the medians over cycles."""
    tune_allocator()
    with join_ranks() as ranks, torch_threads(threads):
        clock = _time_communication(ranks)
        trainer = Trainer(Config.of(TASK, device="cpu"), TASKS[TASK], CPU, ranks)
        fill_replay(trainer, STORED // ranks.size)
        count = EPISODES // ranks.size
        parts: dict[str, list[float]] = {"rollout": [], "update": [], "communication": []}
        first = ranks.rank * count
        with make_envs(trainer.agent.spec, count, "envpool", threads, first=first) as envs:
            for _ in range(CYCLES + 1):
                before = clock["seconds"]
                parts["rollout"].append(_seconds(lambda: trainer.collect(envs)))
                parts["update"].append(_seconds(trainer.learn))
                parts["communication"].append(clock["seconds"] - before)
        medians = {name: statistics.median(values[1:]) for name, values in parts.items()}
        own = torch.tensor(medians.pop("communication"))
        every = [value.item() for value in ranks.all_gather(own)]
        if ranks.is_main:
            # The last rank to arrive does not wait: its time is communication alone.
            medians |= {"least_communication": min(every), "most_communication": max(every)}
            print(json.dumps(medians | {"cycle": medians["rollout"] + medians["update"]}))


def _time_communication(ranks: Ranks) -> dict[str, float]:
    """Count the seconds that a rank spends communicating or waiting for others."""
    spent = {"seconds": 0.0}

    def timed(call: Any) -> Any:
        def wrapper(*arguments: Any) -> Any:
            started = time.perf_counter()
            result = call(*arguments)
            spent["seconds"] += time.perf_counter() - started
            return result

        return wrapper

    for name in ("all_reduce_mean", "all_gather", "all_reduce_sum"):
        setattr(ranks, name, timed(getattr(ranks, name)))
    return spent


if __name__ == "__main__":
    run_rank(int(sys.argv[1])) if len(sys.argv) > 1 else main()
