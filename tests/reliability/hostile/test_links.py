"""Links in a run folder: no command writes to where they point."""

import itertools
import os
import shutil
from pathlib import Path

from tests.reliability.hostile.cases import SEED, numbered, shuffled
from tests.reliability.hostile.readers import READERS, RUN
from tests.reliability.hostile.sandbox import HOME, OUTSIDE, RUNS, SUITE, VICTIM

NAMES = (
    ".lock",
    ".config.json.new",
    "config.json",
    "metrics.csv",
    "latest.safetensors",
    "best.safetensors",
    "inspect.json",
    "inspect.png",
    "video.mp4",
    "tracking.json",
    "wandb",
    "events",
    "checkpoints",
    "checkpoints/.new",
    "checkpoints/000004-000000",
    "checkpoints/replay-000000000102.safetensors",
    "../seed-1.log",
)
"""Files and folders that commands write, relative to the run folder."""
WRITERS = {
    "resume": (READERS["resume"].words, VICTIM),
    "inspect": (("inspect", RUN, "--episodes=2", "--force"), VICTIM),
    "video": (("video", RUN, "--episodes=1", "--size=64", "--force"), VICTIM),
    "sweep": (READERS["sweep"].words, RUNS),
}
"""Commands, and the folders that they may change."""


def move_and_link(file: Path, root: Path) -> None:
    """Move the genuine file or folder elsewhere, so that reading works as before."""
    moved = root / OUTSIDE / "moved"
    if file.exists():
        shutil.move(file, moved)
    file.symlink_to(moved)


LINKS = {
    "moved": move_and_link,
    "file": lambda file, root: file.symlink_to(root / HOME / "precious"),
    "relative": lambda file, root: file.symlink_to(
        os.path.relpath(root / HOME / ".bashrc", file.parent)
    ),
    "new": lambda file, root: file.symlink_to(root / HOME / "new"),
    "folder": lambda file, root: file.symlink_to(root / OUTSIDE / "folder"),
    "hard": lambda file, root: file.hardlink_to(root / HOME / "precious"),
}
CASES = list(itertools.product(WRITERS, NAMES, LINKS))


@numbered(shuffled(CASES), short=16)
def test_nothing_is_written_through_a_link(case, rng, make_sandbox, tally):
    writer, name, link = case
    sandbox = make_sandbox()
    suite = sandbox.root / SUITE
    suite.write_text(suite.read_text().replace("epochs = 2", "epochs = 3"))  # something to train
    file = sandbox.victim / name
    if link != "moved" and (file.exists() or file.is_symlink()):
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    LINKS[link](file, sandbox.root)
    words, writes = WRITERS[writer]
    done = sandbox.run(*words, writes=(writes,))
    outcome = "rejected" if done.returncode else "nothing written outside"
    tally(f"links in a run folder, seed {SEED}", outcome)
