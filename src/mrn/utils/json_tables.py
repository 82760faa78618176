"""Settings that are tables of names and values, written as JSON."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from mrn.utils.errors import UserError

MAX_DEPTH = 50
"""Maximum nesting of a table. Python's own limit depends on the stack."""


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
        text = json.dumps(table, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(f"{name} must be representable as JSON: {error}") from None
    level: list[Any] = [table]
    for _ in range(MAX_DEPTH):
        level = [child for value in level for child in _children(value)]
    if level:
        raise UserError(f"{name} must not be nested more than {MAX_DEPTH} levels deep")
    return json.loads(text)


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()
