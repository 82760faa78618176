"""Milliseconds per update of each critic, against its floor, and the share of sampling."""

from benchmarks.floor import bare_products, record
from benchmarks.measure import take_turns
from benchmarks.setting import fill, make_trainer, one_batch, one_update
from mrn.critics import CRITICS


def measure() -> dict[str, object]:
    """FetchPush, batch 1024, 1e5 transitions stored."""
    critics = {}
    for name in CRITICS:
        trainer = make_trainer("FetchPush", name, buffer_size=100_000)
        fill(trainer, 100_000)
        for _ in range(3):
            one_update(trainer)
        made_of = record(lambda trainer=trainer: one_update(trainer))
        times = take_turns(
            {
                "update": lambda trainer=trainer: one_update(trainer),
                "sampling": lambda trainer=trainer: one_batch(trainer),
                "floor": bare_products(made_of),
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
            "operations": made_of.operations,
        }
    return {
        "critics": critics,
        "mrn_over_floor": critics["mrn"]["over_floor"],
        "monolithic_over_floor": critics["monolithic"]["over_floor"],
        "sampling_share": max(critics[name]["sampling_share"] for name in ("mrn", "monolithic")),
    }
