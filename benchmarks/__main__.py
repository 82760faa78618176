"""Run all benchmarks, print what was measured beside what is asked for, and write it as JSON."""

import json
from pathlib import Path

from benchmarks import agents, collection, cycle, end_to_end, growth, saving, update
from benchmarks.report import measured, tables
from mrn.runs.provenance import versions
from mrn.utils.device import cpu_name, default_threads, torch_threads, tune_allocator
from mrn.utils.files import write_atomically
from mrn.utils.tables import print_table, require_sections, write_sections

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "latest.json"
PAGE = ROOT / "docs" / "performance.md"


def main() -> None:
    """Measure, print, write."""
    tune_allocator()
    require_sections(PAGE, ["measured"])
    threads = default_threads()
    with torch_threads(threads):
        whole = end_to_end.measure(threads)
        results = {
            "machine": {"cores": threads, "cpu": cpu_name()} | versions(),
            "end_to_end": whole,
            "cycle": cycle.measure(threads),
            "collection": collection.measure(),
            "update": update.measure(),
            "agents": agents.measure(),
            "growth": growth.measure(),
            "saving": saving.measure(whole["mrn_seconds"]),
        }
    RESULTS.parent.mkdir(exist_ok=True)
    write_atomically(RESULTS, (json.dumps(results, indent=2) + "\n").encode())
    write_sections(PAGE, {"measured": measured(results)})
    for table in tables(results):
        print_table(table)


if __name__ == "__main__":
    main()
