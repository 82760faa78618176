"""Settings that are tables of names and values, written as JSON."""

import json
from collections.abc import Mapping
from typing import Any

import tyro

from mrn.utils.errors import UserError


def parse_json_table(text: str) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        ValueError: The text is not valid JSON, or not an object.
    """
    table = json.loads(text)
    if not isinstance(table, dict):
        raise ValueError("not a JSON object")
    return table


def to_json_types(name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table as it is after writing and reading JSON, with lists for tuples.

    Raises:
        UserError: A value cannot be written as JSON; `name` is the setting.
    """
    try:
        return json.loads(json.dumps(table, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise UserError(f"{name} must be representable as JSON: {error}") from None


JSON_TABLE = tyro.constructors.PrimitiveConstructorSpec(
    nargs=1,
    metavar="JSON",
    instance_from_str=lambda words: parse_json_table(words[0]),
    is_instance=lambda value: isinstance(value, dict),
    str_from_instance=lambda value: [json.dumps(value)],
)
"""Command-line syntax of a table of names and values."""
