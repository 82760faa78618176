"""Damaged and forged files: commands reject them, or compute what they do without the damage."""

import itertools
import random
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.reliability.hostile import forgeries, readers
from tests.reliability.hostile.cases import SEED, numbered, shuffled
from tests.reliability.hostile.damages import BYTES, FOREIGN, SPECIAL, TEXT, Target
from tests.reliability.hostile.sandbox import SUITE, VICTIM, Sandbox

FILES = 2000
ANY, TEXTS = BYTES | SPECIAL, BYTES | SPECIAL | TEXT


class Kind(NamedTuple):
    """A kind of file."""

    pattern: str
    damages: dict
    readers: tuple[str, ...]
    """Commands that read it, or could be misled by it."""


KINDS = {
    "config": Kind(
        f"{VICTIM}/config.json", TEXTS | FOREIGN, ("resume", "sweep", "report", "figures")
    ),
    "metrics": Kind(f"{VICTIM}/metrics.csv", TEXTS, ("resume", "sweep", "report", "figures")),
    "latest": Kind(
        f"{VICTIM}/latest.safetensors",
        ANY | FOREIGN | forgeries.POLICY,
        ("eval", "inspect", "export", "video"),
    ),
    "best": Kind(f"{VICTIM}/best.safetensors", ANY | FOREIGN | forgeries.POLICY, ("eval best",)),
    "state": Kind(
        f"{VICTIM}/checkpoints/0*/state.safetensors", ANY | FOREIGN | forgeries.STATE, ("resume",)
    ),
    "manifest": Kind(
        f"{VICTIM}/checkpoints/0*/checkpoint.json",
        TEXTS | FOREIGN | forgeries.MANIFEST,
        ("resume",),
    ),
    "marker": Kind(f"{VICTIM}/checkpoints/0*/complete", TEXTS | FOREIGN, ("resume",)),
    "replay": Kind(f"{VICTIM}/checkpoints/replay-*", ANY | FOREIGN, ("resume",)),
    "tracking": Kind(f"{VICTIM}/tracking.json", TEXTS, ("resume",)),
    "suite": Kind(SUITE, TEXTS, ("sweep",)),
    "picture": Kind(f"{VICTIM}/inspect.*", ANY, ("report", "inspect")),
    "video": Kind(f"{VICTIM}/video.mp4", ANY, ("report",)),
    "events": Kind(f"{VICTIM}/events/*", ANY, ("resume", "report")),
    "lock": Kind(f"{VICTIM}/.lock", TEXTS, ("resume", "sweep", "report")),
}
PAIRS = shuffled([(kind, damage) for kind, each in KINDS.items() for damage in each.damages])


def add_optional_files(run: Path) -> None:
    """Add files that most runs do not have."""
    (run / "tracking.json").write_text('{"tracker": "wandb", "id": "a1", "epochs": 2}')
    (run / ".lock").write_text("1234567\n")


@pytest.fixture(scope="module")
def genuine(template, tmp_path_factory):
    """Return a function that returns the result of a command without damage."""

    @cache
    def result(name: str):
        sandbox = Sandbox(tmp_path_factory.mktemp("genuine") / "root", template)
        done, found = readers.run(sandbox, name)
        assert done.returncode == 0, done.stderr
        return found

    return result


@numbered(list(itertools.islice(itertools.cycle(PAIRS), FILES)), short=40)
def test_damaged_file_changes_no_result(case, rng, make_sandbox, genuine, tally):
    kind, damage = case
    pattern, damages, commands = KINDS[kind]
    seed = rng.random()
    for name in commands:
        sandbox, rng = make_sandbox(name), random.Random(seed)  # the same damage for each command
        add_optional_files(sandbox.victim)
        file = rng.choice(sorted(sandbox.root.glob(pattern)))
        damages[damage](Target(file, rng, sandbox))
        done, found = readers.run(sandbox, name)
        outcome = readers.judge(name, done, found, genuine(name))
        tally(f"commands on damaged files, seed {SEED}", outcome)
    tally(f"damaged files, seed {SEED}", kind)
