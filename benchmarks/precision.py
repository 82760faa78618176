"""Milliseconds per update in float32 and bfloat16: `python -m benchmarks.precision`, 5 minutes.

Both alternate, for DDPG with every critic and for every algorithm with its default critic, on
FetchPush with batches of 1,024. Writes benchmarks/results/precision.json; `make pages` updates the
tables.
"""

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.report import machine
from benchmarks.timing import time_in_turns
from benchmarks.trainers import CPU, fill_replay, make_trainer, run_update
from mrn.algorithms import ALGORITHMS, AUTO
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
        results = {
            "machine": {"cores": threads, "cpu": cpu_name()} | versions(),
            "critic with ddpg": {name: compare(critic=name) for name in CRITICS},
            "algorithm with its default critic": {name: compare(algo=name) for name in ALGORITHMS},
        }
    write_atomically(RESULTS, (json.dumps(results, indent=2) + "\n").encode())
    print(section(results))


def compare(critic: str = AUTO, algo: str = "ddpg") -> dict[str, float]:
    """Return the median milliseconds of an update; 8 calls are a multiple of policy delays."""
    candidates = {}
    for precision in PRECISIONS:
        settings = {"algo": algo, "precision": precision, "buffer_size": STORED}
        trainer = make_trainer("FetchPush", critic, **settings)
        fill_replay(trainer, STORED)
        candidates[precision] = lambda trainer=trainer: run_update(trainer)
    times = time_in_turns(candidates, repeats=5, calls=8)
    return {precision: timing.median * 1e3 for precision, timing in times.items()}


def table(kind: str, times: dict[str, dict[str, float]]) -> Table:
    """Return both times and the speedup of each critic or algorithm."""
    rows = []
    for name, by_precision in times.items():
        exact, rounded = (by_precision[precision] for precision in PRECISIONS)
        rows.append((name, f"{exact:.1f}", f"{rounded:.1f}", f"{exact / rounded:.1f}"))
    return (kind, *(f"ms in {precision}" for precision in PRECISIONS), "speedup"), rows


def section(results: dict[str, Any]) -> str:
    """Return both tables as Markdown, after a line about the machine."""
    tables = [table(kind, times) for kind, times in results.items() if kind != "machine"]
    return "\n\n".join([machine(results["machine"]), *map(markdown_table, tables)])


if __name__ == "__main__":
    main()
