"""Exceptions for users, and how the command line reports them."""

import select
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import TypeVar

from mrn.utils.terminal import discard_output, printable

T = TypeVar("T")


def _rebuild(
    kind: type[BaseException], args: tuple[object, ...], state: dict[str, object]
) -> object:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class Picklable(BaseException):
    """Exception that survives pickling, regardless of its constructor's signature."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the attributes instead of the constructor's arguments."""
        return _rebuild, (type(self), self.args, self.__dict__)


class UserError(Picklable, Exception):
    """Invalid request. The command line prints the message without a traceback and exits."""

    exit_code = 2
    already_reported: bool = False
    """True if another rank prints the message."""


class RunError(UserError):
    """Failure during a run: a non-finite value, a crashed environment, a full disk."""

    exit_code = 3

    def __init__(self, message: str, resumable: bool = True) -> None:
        """Initialize the error.

        Args:
            message: What happened.
            resumable: Whether the run can be resumed once the cause is fixed.
        """
        super().__init__(message)
        self.resumable = resumable


DIVERGED_HINT = (
    "try a new run with a lower learning_rate; resuming this one would diverge at the same point"
)
"""Remedy for non-finite weights and losses."""


class Interrupted(Picklable, KeyboardInterrupt):
    """A signal stopped the run after it saved a checkpoint."""

    def __init__(self, number: int, message: str, already_reported: bool = False) -> None:
        """Initialize the exception.

        Args:
            number: Signal number; the exit code is 128 + number.
            message: What happened, and how to resume.
            already_reported: Whether another rank prints the message.
        """
        super().__init__(message)
        self.number, self.already_reported = number, already_reported


def unknown_name(kind: str, name: str, known: list[str], more: str = "") -> UserError:
    """Return the error for an unknown name, with the closest match and all known names."""
    close = get_close_matches(name, known, n=1, cutoff=0.5) or [
        option for option in known if option.lower() == name.lower()
    ]
    hint = f" Did you mean {close[0]!r}?" if close else ""
    more = f"; {more}" if more else ""
    return UserError(f"unknown {kind} {name!r}.{hint} Available: {', '.join(known)}{more}.")


def is_memory_error(error: BaseException) -> bool:
    """Return whether memory is exhausted, also for PyTorch, which this module does not import."""
    names = {kind.__name__ for kind in type(error).__mro__}
    is_kind = not names.isdisjoint(("MemoryError", "OutOfMemoryError"))
    return is_kind or "can't allocate memory" in str(error)  # of PyTorch's CPU allocator


def lookup(kind: str, name: str, table: Mapping[str, T]) -> T:
    """Return `table[name]`.

    Raises:
        UserError: The name is unknown.
    """
    try:
        return table[name]
    except KeyError:
        raise unknown_name(kind, name, list(table)) from None


def _print_error(text: str) -> None:
    with suppress(OSError):  # the reader of a pipe may have exited
        print(printable(text), file=sys.stderr, flush=True)


def _stdout_is_closed() -> bool:
    """Return whether stdout is a pipe whose reader, for example `head`, has exited."""
    pipe = select.poll()
    pipe.register(sys.stdout.fileno(), 0)
    return bool(pipe.poll(0))  # with an empty event mask, poll reports only errors


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning without the source line that issued it."""
    _print_error(f"warning: {message}")


def _describe_os_error(error: OSError) -> str:
    """Return a message with the file name or, if the error has none, the source line."""
    if error.filename is not None:
        return f"cannot read or write {error.filename}: {error.strerror or error}"
    frame = traceback.extract_tb(error.__traceback__)[-1]  # may be a bug in this package
    return f"{type(error).__name__}: {error} ({frame.filename}, line {frame.lineno})"


@contextmanager
def report_errors() -> Iterator[None]:
    """Print errors raised in this block as one message and exit with the matching code.

    Exit codes: 2 for `UserError`, 3 for `RunError`, 128 + the signal number after a signal.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            yield
    except UserError as error:
        if not error.already_reported:
            _print_error(f"error: {error}")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        if not _stdout_is_closed():
            raise
        discard_output()
        sys.exit(1)
    except OSError as error:
        _print_error(f"error: {_describe_os_error(error)}")
        sys.exit(1 if error.filename is None else UserError.exit_code)
    except UnicodeEncodeError as error:
        if error.encoding != sys.getfilesystemencoding():
            raise
        name = ascii(error.object[error.start :][:40])
        _print_error(f"error: the locale cannot encode the file name {name}; set PYTHONUTF8=1")
        sys.exit(UserError.exit_code)
    except KeyboardInterrupt as interrupt:
        if not getattr(interrupt, "already_reported", False):
            _print_error(str(interrupt) or "interrupted")
        sys.exit(128 + getattr(interrupt, "number", signal.SIGINT))
