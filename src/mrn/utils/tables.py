"""Tables of results: in the terminal, and as Markdown in their place in a page."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from mrn.utils.errors import UserError
from mrn.utils.files import read_limited, write_atomically

Table = tuple[tuple[str, ...], Sequence[tuple[str, ...]]]
"""Heads of the columns, and rows."""


def console() -> Console:
    """The terminal. Into a pipe or a file, rows are never folded."""
    return Console(width=None if sys.stdout.isatty() else 200)


def print_table(table: Table) -> None:
    """Print a table."""
    heads, rows = table
    shown = RichTable(*map(escape, heads))
    for row in rows:
        shown.add_row(*map(escape, row))
    console().print(shown)


def markdown_table(table: Table) -> str:
    """A table as Markdown."""
    heads, rows = table
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def with_section(page: str, name: str, text: str) -> str:
    """A Markdown page whose part between the marks of a name is replaced by a text.

    The marks are the comments `<!-- NAME: begin -->` and `<!-- NAME: end -->`.

    Raises:
        UserError: The page does not have them.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, begins, rest = page.partition(begin)
    _, ends, after = rest.partition(end)
    if not (begins and ends):
        raise UserError(f"the page has no place for {name!r}: add the lines {begin} and {end}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def require_sections(path: Path, names: Iterable[str]) -> None:
    """Say so before the work, not after it, where a page cannot take its tables."""
    page = read_limited(path).decode()
    for name in names:
        with_section(page, name, "")


def write_sections(path: Path, sections: Mapping[str, Table | str]) -> None:
    """Replace the marked sections of a Markdown page by tables, or by texts, all or none."""
    page = read_limited(path).decode()
    for name, content in sections.items():
        page = with_section(
            page, name, content if isinstance(content, str) else markdown_table(content)
        )
    write_atomically(path, page.encode())
