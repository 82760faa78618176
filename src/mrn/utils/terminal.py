"""Plain text on the terminal, without control characters."""

import os
import sys
import unicodedata

_INVISIBLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories of control and format characters, surrogates and line separators."""


def printable(text: object) -> str:
    """Return text whose control characters are escaped, except for newlines and tabs.

    Names in files and of folders may contain escape sequences, which would control the terminal.
    """
    return "".join(
        c.encode("unicode_escape").decode()
        if unicodedata.category(c) in _INVISIBLE and c not in "\n\t"
        else c
        for c in str(text)
    )


def show(text: object) -> None:
    """Print a line of plain text.

    Raises:
        OSError: Writing failed, for example because the disk of a log is full.
    """
    try:
        print(printable(text), flush=True)
    except BrokenPipeError:  # `report_errors` ends the command silently
        raise
    except OSError as error:
        discard_output()
        raise OSError(error.errno, error.strerror, "the standard output") from error


def discard_output() -> None:
    """Discard further output, so that flushing it at exit does not fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
