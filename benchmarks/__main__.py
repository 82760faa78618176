"""Run all benchmarks, print what was measured beside what is asked for, and write it as JSON."""

import json
import platform
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import collection, end_to_end, growth, update
from mrn.training.device import default_threads, torch_threads
from mrn.training.rundir import versions

RESULTS = Path(__file__).parent / "results" / "latest.json"

# (what, where in the results, at least or at most, the figure asked for)
TARGETS = (
    ("whole cycle: times as fast as Stable-Baselines3", "end_to_end.mrn_over_sb3", ">=", 2.0),
    ("collection: share of bare EnvPool, 2 threads", "collection.share_of_envpool", ">=", 0.90),
    ("update over its matrix products, mrn", "update.mrn_over_floor", "<=", 1.35),
    ("update over its matrix products, monolithic", "update.monolithic_over_floor", "<=", 1.35),
    ("share of sampling in an update", "update.sampling_share", "<=", 0.12),
    ("update with 1e6 stored over 1e4", "growth.update_1e6_over_1e4", "<=", 1.10),
    ("peak memory, FetchPush, GiB", "growth.peak_gib.FetchPush", "<=", 1.5),
    ("peak memory, BlockRotateZ, GiB", "growth.peak_gib.BlockRotateZ", "<=", 2.5),
    ("seconds from the command to a first episode", "growth.ready_seconds", "<=", 5.0),
)


def main() -> None:
    """Measure, print, write."""
    threads = default_threads()
    with torch_threads(threads):
        results = {
            "machine": machine(threads),
            "end_to_end": end_to_end.measure(threads),
            "collection": collection.measure(),
            "update": update.measure(),
            "growth": growth.measure(),
        }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    show(results)


def machine(threads: int) -> dict[str, object]:
    """What this ran on."""
    return {"cores": threads, "cpu": cpu_name(), "torch": torch.__version__} | versions()


def cpu_name() -> str:
    """The processor's name, as Linux tells it, else as Python does."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def show(results: dict) -> None:
    """Print the figures that are asked for, then each critic's update."""
    table = Table("what", "measured", "asked for", "met")
    for what, where, direction, asked in TARGETS:
        value: float = results  # type: ignore[assignment]
        for key in where.split("."):
            value = value[key]  # type: ignore[index]
        met = value >= asked if direction == ">=" else value <= asked
        table.add_row(what, f"{value:.2f}", f"{direction} {asked:g}", "yes" if met else "NO")
    critics = Table("critic", "update, ms", "floor, ms", "over floor", "sampling")
    for name, row in results["update"]["critics"].items():
        critics.add_row(
            name,
            f"{row['update_ms']:.1f}",
            f"{row['floor_ms']:.1f}",
            f"{row['over_floor']:.2f}",
            f"{row['sampling_share']:.1%}",
        )
    console = Console()
    console.print(table)
    console.print(critics)


if __name__ == "__main__":
    main()
