"""Run all benchmarks, print what was measured beside what is asked for, and write it as JSON."""

import json
from pathlib import Path

from benchmarks import agents, collection, cycle, end_to_end, growth, saving, update
from benchmarks.report import measured, tables
from mrn.device import cpu_name, default_threads, settle_memory, torch_threads
from mrn.files import write_atomically
from mrn.tables import require_sections, show, write_sections
from mrn.training.about import versions

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "latest.json"
PAGE = ROOT / "docs" / "performance.md"


def main() -> None:
    """Measure, print, write."""
    settle_memory()
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
        show(table)


if __name__ == "__main__":
    main()
