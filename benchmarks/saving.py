"""What a checkpoint costs: FetchPush with a full replay of 1e6 transitions, an epoch apart."""

import tempfile
import time
from pathlib import Path

from benchmarks.setting import CYCLE_EPISODES, fill, make_trainer, warmup_episodes
from mrn.runs.checkpoint import Checkpoints

EPOCHS = 3


def measure(cycle_seconds: float) -> dict[str, float]:
    """Seconds of a save, as a share of an epoch of the given cycles, and the disk it takes."""
    trainer = make_trainer("FetchPush")
    fill(trainer, 1_000_000)
    plan = trainer.config.schedule
    assert plan.episodes == CYCLE_EPISODES
    episodes, seconds = warmup_episodes(trainer.agent.spec), []
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = Checkpoints(Path(folder))
        started = time.perf_counter()
        checkpoints.save(trainer, [])
        first = time.perf_counter() - started
        for _ in range(EPOCHS):
            for _ in range(plan.cycles):
                trainer.replay.add(episodes)
            trainer.next_epoch()
            started = time.perf_counter()
            checkpoints.save(trainer, [])
            seconds.append(time.perf_counter() - started)
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    slowest, epoch = max(seconds), plan.cycles * cycle_seconds
    return {
        "seconds": slowest,
        "epoch_seconds": epoch,
        "share_of_epoch": slowest / epoch,
        "all_at_once_seconds": first,
        "disk_mib": size / 2**20,
    }
