"""What to report from a GPU: `make bench-gpu`, about 30 minutes.

Prints the machine, the time of an update of each algorithm on CPU and GPU, and the minutes until
FetchPush is solved on both. `--quick` only checks that everything runs; with `--device cpu`, it
does so without a GPU.
"""

import sys
from collections.abc import Callable

import torch
import tyro

from benchmarks.solve import SOLVED, TASK, solve
from benchmarks.timing import time_in_turns
from benchmarks.trainers import CPU, fill_replay, make_trainer, run_update
from mrn.algorithms import ALGORITHMS, AUTO
from mrn.runs.provenance import versions
from mrn.utils.device import cpu_name, default_threads, find_device, torch_threads, tune_allocator
from mrn.utils.errors import UserError
from mrn.utils.tables import Table, print_table

STORED = 100_000
"""Transitions in the replay buffer."""
QUICK = {
    "epochs": 1,
    "cycles": 1,
    "gradient_steps": 2,
    "eval_episodes": 2,
    "batch_size": 64,
    "hidden_dim": 32,
}
"""Settings with `--quick`."""


def main(device: str = "cuda", quick: bool = False) -> None:
    """Measure a GPU, and print what to report.

    Args:
        device: Device to compare with the CPU.
        quick: Whether to check only that everything runs.
    """
    try:
        chosen = find_device(device)
    except UserError as error:
        sys.exit(str(error))
    tune_allocator()
    print_table(machine(chosen))
    with torch_threads(default_threads()):
        print_table(compare_updates(chosen, quick))
    print_table(compare_runs(chosen, quick))
    print(
        "These times are of a check, not of a benchmark." if quick else "Please report all of it."
    )


def machine(device: torch.device) -> Table:
    """Return the names and versions of what determines the times."""
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else "none"
    about = {"gpu": gpu, "cuda": torch.version.cuda or "none", "cpu": cpu_name()}
    about |= {"cores": str(default_threads())} | versions()
    return ("machine", ""), list(about.items())


def compare_updates(device: torch.device, quick: bool = False) -> Table:
    """Return the milliseconds per update of each algorithm on the CPU and on the device."""
    turns, calls = (1, 2) if quick else (9, 8)
    rows = []
    for algo in ALGORITHMS:
        candidates = {
            name: updates(algo, each, calls, quick)
            for name, each in {"cpu": CPU, "device": device}.items()
        }
        times = time_in_turns(candidates, turns)
        cpu, other = (times[name].median / calls * 1e3 for name in ("cpu", "device"))
        rows.append((algo, f"{cpu:.1f}", f"{other:.1f}", f"{cpu / other:.2f}"))
    return ("algo", "ms per update, cpu", f"ms per update, {device}", "speedup"), rows


def updates(algo: str, device: torch.device, calls: int, quick: bool) -> Callable[[], None]:
    """Return a function that takes `calls` updates and waits for their end."""
    settings = QUICK if quick else {}
    trainer = make_trainer(TASK, AUTO, device, algo=algo, buffer_size=STORED, **settings)
    fill_replay(trainer, 1000 if quick else STORED)

    def call() -> None:
        for _ in range(calls):
            run_update(trainer)
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    return call


def compare_runs(device: torch.device, quick: bool = False) -> Table:
    """Return the minutes until FetchPush is solved on the device and on the CPU."""
    settings = QUICK if quick else {}
    rows = []
    for name in dict.fromkeys((str(device), "cpu")):
        found = solve("fast", device=name, **settings)
        shown = (f"{found['minutes']:.1f}", f"{found['steps']:,}", f"{found['success']:.0%}")
        rows.append((name, *shown))
    return (f"{TASK} until {SOLVED:.0%}", "minutes", "steps", "success"), rows


if __name__ == "__main__":
    tyro.cli(main)
