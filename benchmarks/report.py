"""The measured figures as tables, and as Markdown for docs/performance.md."""

from collections.abc import Iterator
from functools import reduce
from typing import Any

from mrn.utils.tables import Table, markdown_table

# (what, where in the results, at least or at most, the figure asked for)
TARGETS = (
    ("whole cycle with mrn, times Stable-Baselines3's speed", "end_to_end.mrn_over_sb3", ">=", 2.0),
    ("collection, share of bare EnvPool, 2 threads", "collection.share_of_envpool", ">=", 0.90),
    ("update over its matrix products, mrn", "update.mrn_over_floor", "<=", 1.35),
    ("update over its matrix products, monolithic", "update.monolithic_over_floor", "<=", 1.35),
    ("update of td3 over ddpg's, the same critic", "agents.td3_over_ddpg", "<=", 1.8),
    ("update of sac over ddpg's, the same critic", "agents.sac_over_ddpg", "<=", 2.2),
    ("share of sampling in an update", "update.sampling_share", "<=", 0.12),
    ("update with 1e6 transitions stored over 1e4", "growth.update_1e6_over_1e4", "<=", 1.10),
    ("peak memory, FetchPush, GiB", "growth.peak_gib.FetchPush", "<=", 1.5),
    ("peak memory, BlockRotateZ, GiB", "growth.peak_gib.BlockRotateZ", "<=", 2.5),
    ("seconds from the command to the end of a first episode", "growth.ready_seconds", "<=", 5.0),
    ("checkpoint, share of an epoch of FetchPush", "saving.share_of_epoch", "<=", 0.03),
)  # fmt: skip


DIGITS = {"update_ms": 1, "over_ddpg": 2}
"""Of the figures of an agent."""


def tables(results: dict[str, Any]) -> Iterator[Table]:
    """All that was measured, the figures asked for first."""
    targets = []
    for what, where, direction, asked in TARGETS:
        value = reduce(lambda part, key: part[key], where.split("."), results)
        met = value >= asked if direction == ">=" else value <= asked
        targets.append((what, f"{value:.2f}", f"{direction} {asked:g}", "yes" if met else "no"))
    yield ("what", "measured", "asked for", "met"), targets

    whole = results["end_to_end"]
    names = {"mrn": "mrn", "monolithic": "monolithic", "sb3": "Stable-Baselines3"}
    cycles = [
        (
            title,
            f"{whole[name + '_seconds']:.2f}",
            "{:.2f} - {:.2f}".format(*whole[name + "_spread"]),
            f"{whole['sb3_seconds'] / whole[name + '_seconds']:.2f}",
        )
        for name, title in names.items()
    ]
    # What the machine could do at all: the parts of a cycle that are measured bare below.
    physics = 1000 / results["collection"]["FetchPush"]["threads_2"]["envpool"]
    products = 40 * results["update"]["critics"]["mrn"]["floor_ms"] / 1e3
    bare = {
        "bare EnvPool and mrn's bare products": physics + products,
        "the same, both at the figures asked for": physics / 0.90 + 1.35 * products,
    }
    cycles += [
        (what, f"{time:.2f}", "", f"{whole['sb3_seconds'] / time:.2f}")
        for what, time in bare.items()
    ]
    yield ("a cycle: 1,000 steps, 40 updates", "seconds", "middle half", "times as fast"), cycles

    yield (
        ("share of a cycle with mrn", "per cent"),
        [(part, f"{share:.1%}") for part, share in results["cycle"].items()],
    )

    rows = []
    for task in ("FetchPush", "BlockRotateZ"):
        for threads in (1, 2):
            row = results["collection"][task][f"threads_{threads}"]
            gymnasium = f"{row['gymnasium']:,.0f}" if "gymnasium" in row else ""
            speeds = (f"{row['ours']:,.0f}", f"{row['envpool']:,.0f}", gymnasium)
            rows.append((f"{task}, {threads}", *speeds, f"{row['share_of_envpool']:.2f}"))
    heads = ("steps per second; threads", "mrn", "bare EnvPool", "one Gymnasium process", "share")
    yield heads, rows

    yield (
        ("critic", "update, ms", "its products, ms", "over", "sampling", "operations"),
        [
            (
                name,
                f"{row['update_ms']:.1f}",
                f"{row['floor_ms']:.1f}",
                f"{row['over_floor']:.2f}",
                f"{row['sampling_share']:.1%}",
                str(row["operations"]),
            )
            for name, row in results["update"]["critics"].items()
        ],
    )

    agents = results["agents"]["critics"]
    heads = ("algo",)
    for critic in agents:
        heads += (f"update with {critic}, ms", "over ddpg")
    rows = [
        (name, *(f"{own[name][key]:.{d}f}" for own in agents.values() for key, d in DIGITS.items()))
        for name in next(iter(agents.values()))
    ]
    yield heads, rows

    growth = results["growth"]
    yield ("transitions stored", "update, ms"), _pairs(growth["update_ms_by_stored"])
    yield ("batch", "update, ms"), _pairs(growth["update_ms_by_batch"])
    yield ("environments", "steps per second"), _pairs(growth["steps_per_second_by_envs"])

    saving = results["saving"]
    yield (
        ("a checkpoint of FetchPush, 1e6 transitions stored", ""),
        [
            ("seconds, an epoch after the last one", f"{saving['seconds']:.2f}"),
            ("seconds, if nothing was saved before", f"{saving['all_at_once_seconds']:.2f}"),
            ("seconds of an epoch (50 cycles)", f"{saving['epoch_seconds']:.0f}"),
            ("disk, MiB", f"{saving['disk_mib']:.0f}"),
        ],
    )


def solve_table(results: dict[str, Any]) -> Table:
    """How long each took to solve FetchPush, or how far it came."""
    heads = ("FetchPush, seed 100", "success", "environment steps", "updates", "minutes")
    rows = []
    for name, title in (
        ("fast", "mrn, recipe fast"),
        ("paper", "mrn, recipe paper"),
        ("sb3", "Stable-Baselines3, TQC as its zoo has it"),
    ):
        row = results[name]
        success = row["success_at_stop" if name == "sb3" else "success"]
        counts = (f"{row['steps']:,}", f"{row['updates']:,}", f"{row['minutes']:.1f}")
        rows.append((title, f"{success:.0%}", *counts))
    return heads, rows


def _pairs(values: dict[str, float]) -> list[tuple[str, ...]]:
    return [(f"{int(key):,}", f"{value:,.1f}") for key, value in values.items()]


def measured(results: dict[str, Any]) -> str:
    """Every table as Markdown, and on which machine."""
    return "\n\n".join([machine(results["machine"]), *map(markdown_table, tables(results))])


def machine(about: dict[str, Any]) -> str:
    """What it ran on, in a sentence."""
    libraries = [f"{name} {about[name]}" for name in ("torch", "envpool", "mujoco", "python")]
    return f"On {about['cores']} cores of {about['cpu']}, with {', '.join(libraries)}:"
