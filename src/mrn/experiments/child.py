"""A run of a sweep, in a process of its own, which saves and ends when the sweep does."""

import signal
import sys
from pathlib import Path

from mrn.config import Config
from mrn.device import settle_memory
from mrn.errors import reported
from mrn.files import parse_json
from mrn.signals import end_with_parent
from mrn.training.loop import run


def train_job(config: Config, folder: Path, progress: bool = False) -> None:
    """Train a run, or go on with it, in this process."""
    settle_memory()
    run(config, folder, progress, resume=True)


def main() -> None:
    """Train in the folder that is named, by the settings that come as JSON from the sweep."""
    end_with_parent(signal.SIGTERM)
    with reported():
        config = Config.from_json(parse_json(sys.stdin.read(), "the sweep's settings"), "the sweep")
        train_job(config, Path(sys.argv[1]), progress=True)


if __name__ == "__main__":
    main()
