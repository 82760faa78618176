"""Milliseconds per update in float32 and bfloat16: `python -m benchmarks.precision`, 5 minutes.

Both alternate, for every algorithm with every critic, on FetchPush with batches of 1,024. Writes
benchmarks/results/precision.json; `make pages` updates the table.
"""

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.report import machine
from benchmarks.timing import time_in_turns
from benchmarks.trainers import CPU, fill_replay, make_trainer, run_update
from mrn.algorithms import ALGORITHMS
from mrn.critics import CRITICS
from mrn.runs.provenance import versions
from mrn.utils.device import (
    cpu_name,
    default_threads,
    has_bfloat16,
    torch_threads,
    tune_allocator,
)
from mrn.utils.files import write_atomically
from mrn.utils.naming import NO_CRITIC
from mrn.utils.tables import Table, markdown_table

RESULTS = Path(__file__).parent / "results" / "precision.json"
PRECISIONS = ("float32", "bfloat16")
STORED = 20_000


def main() -> None:
    """Measure, write and print."""
    if not has_bfloat16(CPU):
        sys.exit(f"{cpu_name()} has no instructions for bfloat16")
    tune_allocator()
    threads = default_threads()
    with torch_threads(threads):
        times = measure()
    about = {"cores": threads, "cpu": cpu_name()} | versions()
    results = {"machine": about, "update_ms": times}
    write_atomically(RESULTS, (json.dumps(results, indent=2) + "\n").encode())
    print(section(results))


def measure() -> dict[str, dict[str, dict[str, float]]]:
    """Return the median time of an update by critic, algorithm and precision."""
    times: dict[str, dict[str, dict[str, float]]] = {}
    for critic in (*CRITICS, NO_CRITIC):
        for algo, kind in ALGORITHMS.items():
            if kind.uses_critic == (critic != NO_CRITIC):
                times.setdefault(critic, {})[algo] = compare(critic, algo)
    return times


def compare(critic: str, algo: str) -> dict[str, float]:
    """Time both precisions, alternating; 8 calls per turn are a multiple of policy delays."""
    candidates = {}
    for precision in PRECISIONS:
        settings = {"algo": algo, "precision": precision, "buffer_size": STORED}
        trainer = make_trainer("FetchPush", critic, **settings)
        fill_replay(trainer, STORED)
        candidates[precision] = lambda trainer=trainer: run_update(trainer)
    times = time_in_turns(candidates, repeats=5, calls=8)
    return {precision: timing.median * 1e3 for precision, timing in times.items()}


def table(times: dict[str, dict[str, dict[str, float]]]) -> Table:
    """Return one row per critic and one column per algorithm: both times and the speedup."""
    heads = ("critic", *ALGORITHMS)
    rows = [
        (critic, *(_cell(by_algo[algo]) if algo in by_algo else "" for algo in ALGORITHMS))
        for critic, by_algo in times.items()
    ]
    return heads, rows


def _cell(times: dict[str, float]) -> str:
    exact, rounded = (times[precision] for precision in PRECISIONS)
    return f"{exact:.1f}, {rounded:.1f}, {exact / rounded:.1f}"


def section(results: dict[str, Any]) -> str:
    """Return the table as Markdown, after a line about the machine."""
    return f"{machine(results['machine'])}\n\n{markdown_table(table(results['update_ms']))}"


if __name__ == "__main__":
    main()
