"""Milliseconds per update of each critic, relative to its bare matrix products."""

from benchmarks.matmul import record_operations, replay_products
from benchmarks.timing import time_in_turns
from benchmarks.trainers import fill_replay, make_trainer, run_update, sample_batch
from mrn.critics import CRITICS


def measure() -> dict[str, object]:
    """Measure on FetchPush: batches of 1024, 1e5 transitions stored."""
    critics = {}
    for name in CRITICS:
        trainer = make_trainer("FetchPush", name, buffer_size=100_000)
        fill_replay(trainer, 100_000)
        for _ in range(3):
            run_update(trainer)
        recorded = record_operations(lambda trainer=trainer: run_update(trainer))
        times = time_in_turns(
            {
                "update": lambda trainer=trainer: run_update(trainer),
                "sampling": lambda trainer=trainer: sample_batch(trainer),
                "floor": replay_products(recorded),
            },
            repeats=9,
            calls=8,
        )
        update, floor = times["update"].median, times["floor"].median
        critics[name] = {
            "update_ms": update * 1e3,
            "floor_ms": floor * 1e3,
            "over_floor": update / floor,
            "sampling_share": times["sampling"].median / update,
            "operations": recorded.operations,
        }
    return {
        "critics": critics,
        "mrn_over_floor": critics["mrn"]["over_floor"],
        "monolithic_over_floor": critics["monolithic"]["over_floor"],
        "sampling_share": max(critics[name]["sampling_share"] for name in ("mrn", "monolithic")),
    }
