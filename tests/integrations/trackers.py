"""Readers for the files of W&B and trackio."""

import json
import sqlite3
import struct
import time
from pathlib import Path
from typing import NamedTuple


class Tracked(NamedTuple):
    """Run as stored by a tracker."""

    id: str
    name: str
    group: str
    config: dict
    history: list[tuple[int, dict]]
    """Environment steps and metrics of each epoch."""


def records(file: Path):
    """Yield the protobuf messages of a .wandb file, which has LevelDB's log format."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, parts, block = file.read_bytes(), 7, b"", 2**15
    assert data[:4] in (b":W&B", b"")  # still empty
    while at + 7 <= len(data):
        left = block - at % block
        size, kind = struct.unpack_from("<HB", data, at + 4) if left >= 7 else (0, 0)
        if at + 7 + size > len(data):  # incomplete record
            return
        if not kind:  # padding at the end of a block
            at += left
            continue
        parts += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # full record, or the last fragment of one
            yield Record.FromString(parts)
            parts = b""


def wait_for_records(file: Path) -> list:
    """Return all messages. W&B's background process writes the last one after `finish`."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = list(records(file))
        if any(record.HasField("exit") for record in found):
            return found
        time.sleep(0.02)
    raise AssertionError(f"{file} has no exit record")


def read_wandb(run: Path) -> list[Tracked]:
    """Return the runs that `wandb sync` would upload; files with one ID form one run."""
    found = {}
    for file in sorted(run.glob("wandb/offline-run-*/*.wandb")):
        for record in wait_for_records(file):
            if record.HasField("run"):
                run_record = record.run
                updates = run_record.config.update
                config = {item.key: json.loads(item.value_json) for item in updates}
                before = found.get(run_record.run_id)
                history = before.history if before else []
                names = (run_record.run_id, run_record.display_name, run_record.run_group)
                found[run_record.run_id] = last = Tracked(*names, config, history)
            elif record.HasField("history"):
                items = {
                    item.key or item.nested_key[0]: json.loads(item.value_json)
                    for item in record.history.item
                }
                logged = {name: items[name] for name in items if not name.startswith("_")}
                last.history.append((record.history.step.num, logged))
    return list(found.values())


def read_trackio(folder: Path, id_: str) -> list[Tracked]:
    """Return the runs with an ID in trackio's database."""
    with sqlite3.connect(folder / "mrn.db") as database:
        rows = database.execute("SELECT run_id, run_name, step, metrics FROM metrics ORDER BY id")
        configs = database.execute("SELECT run_id, config FROM configs").fetchall()
        found = {}
        for run, name, step, logged in rows:
            if not name.endswith(id_):
                continue
            (config,) = (json.loads(content) for key, content in configs if key == run)
            tracked = Tracked(run, name.removesuffix(f" {id_}"), config["_Group"], config, [])
            found.setdefault(run, tracked).history.append((step, json.loads(logged)))
    database.close()
    return list(found.values())
