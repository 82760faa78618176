"""Tables for the terminal and for Markdown pages."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table as RichTable

from mrn.utils.console import console
from mrn.utils.errors import UserError
from mrn.utils.files import read_limited, write_atomically
from mrn.utils.terminal import printable

Table = tuple[tuple[str, ...], Sequence[tuple[str, ...]]]
"""Column headers and rows."""


def print_table(table: Table) -> None:
    """Print a table."""
    header, rows = table
    rich_table = RichTable(*map(escape, header))
    for row in rows:
        rich_table.add_row(*map(escape, row))
    console().print(rich_table)


def markdown_table(table: Table) -> str:
    """Return a table as Markdown."""
    header, rows = table
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(_markdown_cell, line))} |" for line in lines)


def _markdown_cell(text: str) -> str:
    """Escape what would end a cell or a row."""
    return one_line(text).replace("|", "\\|")


def one_line(text: str) -> str:
    """Replace line breaks by spaces, and escape other control characters."""
    return printable(" ".join(text.splitlines()))


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""First characters of cells that spreadsheet programs run as a formula."""


def csv_text(text: str) -> str:
    """Return a name as a cell of a CSV file that spreadsheet programs show as text."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def with_section(page: str, name: str, text: str) -> str:
    """Return a Markdown page with the section of that name replaced by `text`.

    A section is enclosed by the comments `<!-- NAME: begin -->` and `<!-- NAME: end -->`.

    Raises:
        UserError: The page has no such section.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, found_begin, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end):
        raise UserError(f"the page has no section {name!r}: add the lines {begin} and {end}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def require_sections(path: Path, names: Iterable[str]) -> None:
    """Check that a page has all sections, so that a missing one fails before the work.

    Raises:
        UserError: A section is missing.
    """
    page = read_limited(path).decode()
    for name in names:
        with_section(page, name, "")


def write_sections(path: Path, sections: Mapping[str, Table | str]) -> None:
    """Replace sections of a Markdown page with tables or text, all of them or none.

    Raises:
        UserError: A section is missing.
    """
    page = read_limited(path).decode()
    for name, content in sections.items():
        page = with_section(
            page, name, content if isinstance(content, str) else markdown_table(content)
        )
    write_atomically(path, page.encode())
