"""Tables of the measurements, and their Markdown for docs/performance.md."""

from collections.abc import Iterator
from functools import reduce
from typing import Any

from mrn.utils.tables import Table, markdown_table

# (metric, path in latest.json, at least or at most, target)
TARGETS = (
    ("cycle with mrn, speedup over Stable-Baselines3", "end_to_end.mrn_over_sb3", ">=", 2.0),
    ("rollouts, share of bare EnvPool, 2 threads", "collection.share_of_envpool", ">=", 0.90),
    ("update over its matrix products, mrn", "update.mrn_over_floor", "<=", 1.35),
    ("update over its matrix products, monolithic", "update.monolithic_over_floor", "<=", 1.35),
    ("update of td3, relative to ddpg", "algorithms.td3_over_ddpg", "<=", 1.8),
    ("update of sac, relative to ddpg", "algorithms.sac_over_ddpg", "<=", 2.2),
    ("sampling, share of an update", "update.sampling_share", "<=", 0.12),
    ("update with 1e6 transitions stored over 1e4", "scaling.update_1e6_over_1e4", "<=", 1.10),
    ("peak memory, FetchPush, GiB", "scaling.peak_gib.FetchPush", "<=", 1.5),
    ("peak memory, BlockRotateZ, GiB", "scaling.peak_gib.BlockRotateZ", "<=", 2.5),
    ("seconds from command to end of first episode", "scaling.ready_seconds", "<=", 5.0),
    ("checkpoint, share of an epoch of FetchPush", "checkpoint.share_of_epoch", "<=", 0.03),
)  # fmt: skip


DIGITS = {"update_ms": 1, "over_ddpg": 2}
"""Decimals of an algorithm's columns."""


def tables(results: dict[str, Any]) -> Iterator[Table]:
    """Yield all tables, targets first."""
    targets = []
    for what, where, direction, asked in TARGETS:
        value = reduce(lambda part, key: part[key], where.split("."), results)
        met = value >= asked if direction == ">=" else value <= asked
        targets.append((what, f"{value:.2f}", f"{direction} {asked:g}", "yes" if met else "no"))
    yield ("metric", "measured", "target", "met"), targets

    end_to_end = results["end_to_end"]
    names = {"mrn": "mrn", "monolithic": "monolithic", "sb3": "Stable-Baselines3"}
    cycles = [
        (
            title,
            f"{end_to_end[name + '_seconds']:.2f}",
            "{:.2f} - {:.2f}".format(*end_to_end[name + "_spread"]),
            f"{end_to_end['sb3_seconds'] / end_to_end[name + '_seconds']:.2f}",
        )
        for name, title in names.items()
    ]
    # Lower bounds: the parts of a cycle that are measured bare below.
    physics = 1000 / results["collection"]["FetchPush"]["threads_2"]["envpool"]
    products = 40 * results["update"]["critics"]["mrn"]["floor_ms"] / 1e3
    bare = {
        "bare EnvPool and matrix products of mrn": physics + products,
        "the same, at the targets above": physics / 0.90 + 1.35 * products,
    }
    cycles += [
        (name, f"{time:.2f}", "", f"{end_to_end['sb3_seconds'] / time:.2f}")
        for name, time in bare.items()
    ]
    yield ("cycle: 1,000 steps, 40 updates", "seconds", "quartiles", "speedup"), cycles

    yield (
        ("part of a cycle with mrn", "share"),
        [(part, f"{share:.1%}") for part, share in results["cycle"].items()],
    )

    rows = []
    for task in ("FetchPush", "BlockRotateZ"):
        for threads in (1, 2):
            row = results["collection"][task][f"threads_{threads}"]
            gymnasium = f"{row['gymnasium']:,.0f}" if "gymnasium" in row else ""
            speeds = (f"{row['ours']:,.0f}", f"{row['envpool']:,.0f}", gymnasium)
            rows.append((f"{task}, {threads}", *speeds, f"{row['share_of_envpool']:.2f}"))
    heads = (
        "task, threads (steps per second)",
        "mrn",
        "bare EnvPool",
        "one Gymnasium process",
        "share",
    )
    yield heads, rows

    yield (
        ("critic", "ms per update", "ms of products", "ratio", "sampling", "operations"),
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

    algorithms = results["algorithms"]["critics"]
    heads = ("algo",)
    for critic in algorithms:
        heads += (f"ms per update with {critic}", "relative to ddpg")
    rows = [
        (
            name,
            *(
                f"{own[name][key]:.{d}f}"
                for own in algorithms.values()
                for key, d in DIGITS.items()
            ),
        )
        for name in next(iter(algorithms.values()))
    ]
    yield heads, rows

    scaling = results["scaling"]
    yield ("transitions stored", "ms per update"), _pairs(scaling["update_ms_by_stored"])
    yield ("batch size", "ms per update"), _pairs(scaling["update_ms_by_batch"])
    yield ("environments", "steps per second"), _pairs(scaling["steps_per_second_by_envs"])

    checkpoint = results["checkpoint"]
    yield (
        ("checkpoint of FetchPush, 1e6 transitions stored", ""),
        [
            ("seconds, one epoch after the previous one", f"{checkpoint['seconds']:.2f}"),
            ("seconds, first checkpoint", f"{checkpoint['all_at_once_seconds']:.2f}"),
            ("seconds per epoch (50 cycles)", f"{checkpoint['epoch_seconds']:.0f}"),
            ("disk, MiB", f"{checkpoint['disk_mib']:.0f}"),
        ],
    )


def solve_table(results: dict[str, Any]) -> Table:
    """Return the time each took to solve FetchPush, or its success at the end."""
    heads = ("FetchPush, seed 100", "success", "environment steps", "updates", "minutes")
    rows = []
    for name, title in (
        ("fast", "mrn, recipe fast"),
        ("paper", "mrn, recipe paper"),
        ("sb3", "Stable-Baselines3, TQC with its zoo's settings"),
    ):
        row = results[name]
        success = row["success_at_stop" if name == "sb3" else "success"]
        counts = (f"{row['steps']:,}", f"{row['updates']:,}", f"{row['minutes']:.1f}")
        rows.append((title, f"{success:.0%}", *counts))
    return heads, rows


def _pairs(values: dict[str, float]) -> list[tuple[str, ...]]:
    return [(f"{int(key):,}", f"{value:,.1f}") for key, value in values.items()]


def solve_section(results: dict[str, Any]) -> str:
    """Return the table of `benchmarks.solve` as Markdown."""
    return f"{machine(results['machine'])}\n\n{markdown_table(solve_table(results))}"


def measured(results: dict[str, Any]) -> str:
    """Return all tables as Markdown, after a line about the machine."""
    return "\n\n".join([machine(results["machine"]), *map(markdown_table, tables(results))])


def machine(about: dict[str, Any]) -> str:
    """Return a sentence about the machine."""
    libraries = [f"{name} {about[name]}" for name in ("torch", "envpool", "mujoco", "python")]
    return f"On {about['cores']} cores of {about['cpu']}, with {', '.join(libraries)}:"
