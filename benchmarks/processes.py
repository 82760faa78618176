"""One run on two processes: `python -m benchmarks.processes`, 4 minutes, tells docs/scale.md.

Cycles of FetchPush by the paper's protocol (20 episodes, then 40 updates of 1,024), the replay
filled, by one process with one and with two threads and by two processes with one thread each. They
take turns, each in processes of their own. What more machines would give is computed from the
figures of one thread and the network that is assumed; the page says which is which.
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.setting import CPU, fill, make_trainer, one_update
from mrn.config import Config
from mrn.distributed import Ranks, join_ranks
from mrn.envs import TASKS, make_envs
from mrn.training.trainer import Trainer
from mrn.utils.device import cpu_name, torch_threads, tune_allocator
from mrn.utils.files import write_atomically
from mrn.utils.tables import Table, print_table, require_sections, write_sections

ROOT = Path(__file__).parents[1]
PAGE, FIGURES = ROOT / "docs" / "scale.md", ROOT / "benchmarks" / "results" / "processes.json"
TASK, TURNS, CYCLES, FILLED = "FetchPush", 3, 6, 50_000
EPISODES, UPDATES, BATCH, STEPS = 20, 40, 1024, 1000
CANDIDATES = {"1 process, 1 thread": (1, 1), "1 process, 2 threads": (1, 2)}
CANDIDATES |= {"2 processes, 1 thread each": (2, 1)}
MANY = (1, 2, 4, 8, 16)
"""Processes, a core each, for which the page computes."""
BANDWIDTH, LATENCY = 10e9 / 8, 50e-6
"""Bytes per second and seconds of the network that is assumed: 10 Gbit/s."""


def main() -> None:
    """Measure, write the figures down, and put the tables into the page."""
    tune_allocator()
    require_sections(PAGE, ["measured", "computed"])
    said: dict[str, list[dict[str, float]]] = {name: [] for name in CANDIDATES}
    for _ in range(TURNS):
        for name, (processes, threads) in CANDIDATES.items():
            said[name].append(_start(processes, threads))
    figures: dict[str, Any] = {
        name: {key: statistics.median(turn[key] for turn in turns) for key in turns[0]}
        for name, turns in said.items()
    }
    figures["updates"] = {str(BATCH // count): _update_seconds(BATCH // count) for count in MANY}
    figures["megabytes"], figures["cpu"] = _gradient_bytes() / 1e6, cpu_name()
    write_atomically(FIGURES, json.dumps(figures, indent=1).encode())
    found = tables(figures)
    for table in found.values():
        print_table(table)
    write_sections(PAGE, found)


def tables(figures: dict[str, Any]) -> dict[str, Table]:
    """What the page shows, by the name of its section."""
    alone = figures["1 process, 1 thread"]
    rows = []
    for name in CANDIDATES:
        one = figures[name]
        cells = (f"{STEPS / one['rollout']:,.0f}", f"{UPDATES / one['update']:.1f}")
        shares = f"{one['least_talk'] / one['cycle']:.1%} - {one['most_talk'] / one['cycle']:.1%}"
        speed = f"{alone['cycle'] / one['cycle']:.2f}"
        rows.append((name, *cells, f"{one['cycle']:.2f}", speed, shares))
    heads = ("", "steps per second", "updates per second", "seconds of a cycle", "times as fast")
    measured = ((*heads, "share of communication"), rows)
    computed = []
    for count in MANY:
        update = figures["updates"][str(BATCH // count)]
        talk = _all_reduce(figures["megabytes"] * 1e6, count)
        cycle = alone["rollout"] / count + UPDATES * (update + talk)
        first = alone["rollout"] + UPDATES * figures["updates"][str(BATCH)]
        cells = (f"{update * 1e3:.1f}", f"{talk * 1e3:.1f}", f"{cycle:.2f}")
        computed.append((str(count), str(BATCH // count), *cells, f"{first / cycle:.1f}"))
    heads = ("processes", "batch of each", "ms of an update (measured)", "ms of its all-reduce")
    return {
        "measured": measured,
        "computed": ((*heads, "seconds of a cycle", "times as fast"), computed),
    }


def _all_reduce(size: float, processes: int) -> float:
    """Seconds of a ring: each process sends 2 (n - 1) / n of the bytes, in 2 (n - 1) steps."""
    hops = 2 * (processes - 1)
    return hops / processes * size / BANDWIDTH + hops * LATENCY


def _gradient_bytes() -> int:
    optimizers = make_trainer(TASK).agent.algorithm.optimizers.values()
    return sum(weight.nbytes for optimizer in optimizers for weight in optimizer.weights)


def _update_seconds(batch: int) -> float:
    trainer = make_trainer(TASK, batch_size=batch)
    fill(trainer, FILLED)
    with torch_threads(1):
        return statistics.median(_seconds(lambda: one_update(trainer)) for _ in range(60))


def _seconds(call: Any) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _start(processes: int, threads: int) -> dict[str, float]:
    """A turn of some processes, which say how long their cycles took."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command = [sys.executable, *launch, "-m", "benchmarks.processes", str(threads)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return json.loads(ended.stdout.splitlines()[-1])


def member(threads: int) -> None:
    """One process of a turn; the leader says the medians over cycles."""
    tune_allocator()
    with join_ranks() as ranks, torch_threads(threads):
        talk = _count_talk(ranks)
        trainer = Trainer(Config.of(TASK, device="cpu"), TASKS[TASK], CPU, ranks)
        fill(trainer, FILLED // ranks.size)
        count = EPISODES // ranks.size
        parts: dict[str, list[float]] = {"rollout": [], "update": [], "talk": []}
        first = ranks.rank * count
        with make_envs(trainer.agent.spec, count, "envpool", threads, first=first) as envs:
            for _ in range(CYCLES + 1):
                before = talk["seconds"]
                parts["rollout"].append(_seconds(lambda: trainer.collect(envs)))
                parts["update"].append(_seconds(trainer.learn))
                parts["talk"].append(talk["seconds"] - before)
        said = {name: statistics.median(values[1:]) for name, values in parts.items()}
        talks = [value.item() for value in ranks.all_gather(torch.tensor(said.pop("talk")))]
        if ranks.is_main:
            # Who comes last does not wait: the least is communication, the rest is waiting.
            said |= {"least_talk": min(talks), "most_talk": max(talks)}
            print(json.dumps(said | {"cycle": said["rollout"] + said["update"]}))


def _count_talk(ranks: Ranks) -> dict[str, float]:
    """Count the seconds that ranks spend exchanging, and waiting for each other."""
    spent = {"seconds": 0.0}

    def counted(call: Any) -> Any:
        def wrapper(*arguments: Any) -> Any:
            started = time.perf_counter()
            result = call(*arguments)
            spent["seconds"] += time.perf_counter() - started
            return result

        return wrapper

    for name in ("average", "gather", "total"):
        setattr(ranks, name, counted(getattr(ranks, name)))
    return spent


if __name__ == "__main__":
    member(int(sys.argv[1])) if len(sys.argv) > 1 else main()
