"""What is known of how a run came about: its settings, versions and machine, kept in a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrn.config import Config
from mrn.errors import UserError
from mrn.files import parse_json, read_bounded

Facts = tuple[tuple[str, str], ...]
"""Names and what is said of each, to be shown."""


@dataclass(frozen=True)
class Kept:
    """A run's settings and the circumstances of its training."""

    config: Config
    versions: Facts = ()
    machine: Facts = ()
    """Where it was trained; empty where that was not written down."""


def read_kept(file: Path) -> Kept:
    """The settings of a run: its config.json, or the copy of it beside a published CSV.

    Raises:
        UserError: It is damaged, or not of a run.
    """
    about = parse_json(read_bounded(file), str(file))
    if not isinstance(about, dict):
        raise UserError(f"{file} is damaged: it is not the settings of a run")
    config = Config.from_json(about.get("config"), str(file))
    return Kept(config, _facts(about.get("versions")), _facts(about.get("machine")))


def _facts(found: Any) -> Facts:
    """Whatever is there, as text: these are shown and decide nothing."""
    pairs = found.items() if isinstance(found, dict) else ()
    return tuple((str(name), str(value)) for name, value in pairs if value is not None)
