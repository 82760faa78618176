"""Settings as command-line options."""

import json
from collections.abc import Mapping
from typing import Any

import tyro

from mrn.utils.json_tables import parse_json_table

JSON_TABLE = tyro.constructors.PrimitiveConstructorSpec(
    nargs=1,
    metavar="JSON",
    instance_from_str=lambda words: parse_json_table(words[0]),
    is_instance=lambda value: isinstance(value, dict),
    str_from_instance=lambda value: [json.dumps(value)],
)
"""Command-line syntax of a table of names and values."""


def to_flags(settings: Mapping[str, Any]) -> list[str]:
    """Return settings as options of `mrn train`, for example `--batch-size=512`."""
    return [word for name, value in settings.items() for word in _words(name, value)]


def _words(name: str, value: Any) -> list[str]:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    if isinstance(value, tuple | list):
        return [f"--{flag}", *map(str, value)]
    # One word, because a value may start with a dash.
    return [f"--{flag}={json.dumps(value) if isinstance(value, dict) else value}"]
