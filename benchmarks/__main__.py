"""Run all benchmarks, print what was measured beside what is asked for, and write it as JSON."""

import json
from pathlib import Path

from benchmarks import agents, collection, cycle, end_to_end, growth, saving, update
from benchmarks.report import show, with_tables
from mrn.device import cpu_name, default_threads, settle_memory, torch_threads
from mrn.training.about import versions

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "latest.json"
PAGE = ROOT / "docs" / "performance.md"


def main() -> None:
    """Measure, print, write."""
    settle_memory()
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
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    PAGE.write_text(with_tables(PAGE.read_text(), results))
    show(results)


if __name__ == "__main__":
    main()
