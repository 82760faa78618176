"""Run all benchmarks, print the results next to their targets, and write them as JSON."""

import json
from pathlib import Path

from benchmarks import algorithms, checkpoint, collection, cycle, end_to_end, scaling, update
from benchmarks.report import tables
from mrn.runs.provenance import versions
from mrn.utils.device import cpu_name, default_threads, torch_threads, tune_allocator
from mrn.utils.files import write_atomically
from mrn.utils.tables import print_table

RESULTS = Path(__file__).parent / "results" / "latest.json"


def main() -> None:
    """Measure, write and print."""
    tune_allocator()
    threads = default_threads()
    with torch_threads(threads):
        cycles = end_to_end.measure(threads)
        results = {
            "machine": {"cores": threads, "cpu": cpu_name()} | versions(),
            "end_to_end": cycles,
            "cycle": cycle.measure(threads),
            "collection": collection.measure(),
            "update": update.measure(),
            "algorithms": algorithms.measure(),
            "scaling": scaling.measure(),
            "checkpoint": checkpoint.measure(cycles["mrn_seconds"]),
        }
    RESULTS.parent.mkdir(exist_ok=True)
    write_atomically(RESULTS, (json.dumps(results, indent=2) + "\n").encode())
    for table in tables(results):
        print_table(table)


if __name__ == "__main__":
    main()
