"""HTML that notebooks show instead of `repr`."""

from collections.abc import Mapping
from html import escape
from typing import Any


def html_table(values: Mapping[str, Any]) -> str:
    """Return names and values as a table with two columns."""
    rows = (
        f"<tr><th style='text-align: left'>{escape(name)}</th>"
        f"<td style='text-align: left'>{escape(str(value))}</td></tr>"
        for name, value in values.items()
    )
    return f"<table>{''.join(rows)}</table>"
