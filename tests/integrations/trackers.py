"""Runs as the files of a tracker have them."""

import json
import sqlite3
import struct
import time
from pathlib import Path
from typing import NamedTuple


class Tracked(NamedTuple):
    """A run as a tracker's files have it."""

    id: str
    name: str
    group: str
    config: dict
    history: list[tuple[int, dict]]
    """Environment steps, and the metrics by name."""


def records(file: Path):
    """The protobuf messages of a .wandb file, which is a log in LevelDB's format."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, parts, block = file.read_bytes(), 7, b"", 2**15
    assert data[:4] in (b":W&B", b"")  # nothing yet
    while at + 7 <= len(data):
        left = block - at % block
        size, kind = struct.unpack_from("<HB", data, at + 4) if left >= 7 else (0, 0)
        if at + 7 + size > len(data):  # being written
            return
        if not kind:  # the rest of a block that had no room for more
            at += left
            continue
        parts += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # a whole message, or the last part of one
            yield Record.FromString(parts)
            parts = b""


def finished(file: Path) -> list:
    """All messages of a file. W&B's own process writes the last after `finish` has returned."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = list(records(file))
        if any(record.HasField("exit") for record in found):
            return found
        time.sleep(0.02)
    raise AssertionError(f"{file} does not end")


def read_wandb(run: Path) -> list[Tracked]:
    """The runs that `wandb sync` would make of a run's folder: files of one id are one run."""
    found = {}
    for file in sorted(run.glob("wandb/offline-run-*/*.wandb")):
        for record in finished(file):
            if record.HasField("run"):
                about = record.run
                config = {item.key: json.loads(item.value_json) for item in about.config.update}
                before = found.get(about.run_id)
                history = before.history if before else []
                names = (about.run_id, about.display_name, about.run_group)
                found[about.run_id] = last = Tracked(*names, config, history)
            elif record.HasField("history"):
                items = {
                    item.key or item.nested_key[0]: json.loads(item.value_json)
                    for item in record.history.item
                }
                logged = {name: items[name] for name in items if not name.startswith("_")}
                last.history.append((record.history.step.num, logged))
    return list(found.values())


def read_trackio(folder: Path, id_: str) -> list[Tracked]:
    """The runs of one of our folders in trackio's database."""
    with sqlite3.connect(folder / "mrn.db") as database:
        rows = database.execute("SELECT run_id, run_name, step, metrics FROM metrics ORDER BY id")
        configs = database.execute("SELECT run_id, config FROM configs").fetchall()
        found = {}
        for run, name, step, logged in rows:
            if not name.endswith(id_):
                continue
            (config,) = (json.loads(content) for of, content in configs if of == run)
            about = Tracked(run, name.removesuffix(f" {id_}"), config["_Group"], config, [])
            found.setdefault(run, about).history.append((step, json.loads(logged)))
    database.close()
    return list(found.values())
