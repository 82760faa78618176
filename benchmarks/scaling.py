"""Scaling with replay size, batch size and environments; peak memory and startup time."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.collection import compare
from benchmarks.timing import time_in_turns
from benchmarks.trainers import fill_replay, make_trainer, run_update

MEMORY = """
from benchmarks.trainers import *
from mrn.utils.device import tune_allocator
from mrn.envs import make_envs
tune_allocator()
trainer = make_trainer({task!r})
fill_replay(trainer, 1_000_000)
with make_envs(trainer.agent.spec, 20, "envpool", 2) as envs:
    trainer.collect(envs)
    trainer.learn()
from pathlib import Path
# Not getrusage, whose peak includes that of the parent process.
lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
status = dict(line.split(":", 1) for line in lines)
print(int(status["VmHWM"].split()[0]) / 2**20)
"""


def measure() -> dict[str, object]:
    """Measure FetchPush with MRN."""
    trainers = {}
    for count in (10_000, 100_000, 1_000_000):
        trainers[count] = make_trainer("FetchPush")
        fill_replay(trainers[count], count)
    times = time_in_turns(
        {str(n): lambda trainer=t: run_update(trainer) for n, t in trainers.items()}, 9, calls=8
    )
    stored = {count: timing.median * 1e3 for count, timing in times.items()}
    return {
        "update_ms_by_stored": stored,
        "update_1e6_over_1e4": stored["1000000"] / stored["10000"],
        "update_ms_by_batch": by_batch(),
        "steps_per_second_by_envs": {
            n: compare("FetchPush", 2, False, n)["ours"] for n in (4, 16, 64)
        },
        "peak_gib": {task: peak_memory(task) for task in ("FetchPush", "BlockRotateZ")},
        "ready_seconds": ready_seconds(),
    }


def by_batch() -> dict[str, float]:
    """Return milliseconds per update by batch size."""
    candidates = {}
    for size in (256, 1024, 4096, 8192):
        trainer = make_trainer("FetchPush", batch_size=size, buffer_size=100_000)
        fill_replay(trainer, 100_000)
        candidates[str(size)] = lambda trainer=trainer: run_update(trainer)
    times = time_in_turns(candidates, repeats=5, calls=2)
    return {size: timing.median * 1e3 for size, timing in times.items()}


def peak_memory(task: str) -> float:
    """Return the peak memory in GiB of a process with 1e6 transitions that trains one cycle."""
    script = [sys.executable, "-c", MEMORY.format(task=task)]
    return float(subprocess.run(script, check=True, capture_output=True, text=True).stdout)


def ready_seconds() -> float:
    """Return the seconds from starting the command to the end of its only episode."""
    mrn = str(Path(sys.executable).with_name("mrn"))
    with tempfile.TemporaryDirectory() as folder:
        options = [f"--{name}=1" for name in ("epochs", "cycles", "num-envs")]
        options += ["--gradient-steps=0", "--eval-episodes=0"]
        started = time.perf_counter()
        subprocess.run(
            [mrn, "train", "FetchPush", *options, "--run-dir", f"{folder}/run"],
            check=True,
            capture_output=True,
        )
        return time.perf_counter() - started
