"""Cost of a checkpoint: FetchPush with a full replay buffer of 1e6 transitions."""

import tempfile
import time
from pathlib import Path

from benchmarks.trainers import NUM_ENVS, fill_replay, make_trainer, random_episodes
from mrn.runs.checkpoint import Checkpoints

EPOCHS = 3


def measure(cycle_seconds: float) -> dict[str, float]:
    """Measure seconds and disk space of a checkpoint after each epoch.

    Args:
        cycle_seconds: Duration of a cycle; the share of an epoch is computed from it.
    """
    trainer = make_trainer("FetchPush")
    fill_replay(trainer, 1_000_000)
    schedule = trainer.config.schedule
    assert schedule.num_envs == NUM_ENVS
    episodes, seconds = random_episodes(trainer.agent.spec), []
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = Checkpoints(Path(folder))
        started = time.perf_counter()
        checkpoints.save(trainer, [])
        first = time.perf_counter() - started
        for _ in range(EPOCHS):
            for _ in range(schedule.cycles):
                trainer.replay.add(episodes)
            trainer.next_epoch()
            started = time.perf_counter()
            checkpoints.save(trainer, [])
            seconds.append(time.perf_counter() - started)
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    slowest, epoch = max(seconds), schedule.cycles * cycle_seconds
    return {
        "seconds": slowest,
        "epoch_seconds": epoch,
        "share_of_epoch": slowest / epoch,
        "all_at_once_seconds": first,
        "disk_mib": size / 2**20,
    }
