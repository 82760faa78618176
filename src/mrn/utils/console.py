"""Rich consoles that escape control characters and report failing output."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from rich.console import Console
from rich.text import Text

from mrn.utils.errors import RunError
from mrn.utils.terminal import discard_output, printable


class SafeConsole(Console):
    """Console that escapes control characters in strings, also in those of tables."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Convert a string to rich text."""
        return super().render_str(printable(text), **options)

    def on_broken_pipe(self) -> None:
        """Leave it to `report_errors`, because rich would exit the program."""
        raise


def console() -> Console:
    """Return a console for stdout. In pipes and files it is wide enough not to wrap rows."""
    return SafeConsole(width=None if sys.stdout.isatty() else 200)


def run_console(quiet: bool = False) -> Console:
    """Return the console of a run or a sweep, which fails with a `RunError` if writing fails."""
    stream = cast(TextIO, _OutputStream(sys.stdout))
    return SafeConsole(file=stream, highlight=False, quiet=quiet)


class _OutputStream:
    """The standard output of a run."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        with _output_errors():
            return self.stream.write(text)

    def flush(self) -> None:
        with _output_errors():
            self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def _output_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        discard_output()
        raise RunError(f"cannot write to the standard output: {error.strerror}") from error
