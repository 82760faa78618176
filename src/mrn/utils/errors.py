"""Errors that a user can mend: each says what is wrong, where, and the remedy."""

import os
import select
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import TypeVar

T = TypeVar("T")


def _again(kind: type[BaseException], args: tuple[object, ...], state: dict[str, object]) -> object:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class Picklable(BaseException):
    """An error that another process gets whole, whatever its constructor takes."""

    def __reduce__(self) -> tuple[object, ...]:
        """By what it holds, not by what it was made from."""
        return _again, (type(self), self.args, self.__dict__)


class UserError(Picklable, Exception):
    """A mistake in what was asked for; the command line prints it alone and exits with its code."""

    exit_code = 2
    already_reported: bool = False
    """Another rank prints the message."""


class RunError(UserError):
    """A run that cannot go on: a number that is not finite, a dead environment, a full disk."""

    exit_code = 3

    def __init__(self, message: str, resumable: bool = True) -> None:
        """Say what happened, and whether the run can go on when that is put right."""
        super().__init__(message)
        self.resumable = resumable


DIVERGED_HINT = (
    "a new run with a lower --learning-rate may help, this one would come to the same point again"
)
"""The remedy where weights or losses are no longer finite."""


class Interrupted(Picklable, KeyboardInterrupt):
    """The run was asked to end; it has saved."""

    def __init__(self, number: int, message: str, already_reported: bool = False) -> None:
        """Remember which signal it was: the exit code is 128 more.

        Args:
            number: Of the signal.
            message: What happened, and how to go on.
            already_reported: Another rank prints the message.
        """
        super().__init__(message)
        self.number, self.already_reported = number, already_reported


def unknown_name(kind: str, name: str, known: list[str], more: str = "") -> UserError:
    """The error for a name that nothing goes by: the nearest one, and all there are."""
    near = get_close_matches(name, known, n=1, cutoff=0.5) or [
        option for option in known if option.lower() == name.lower()
    ]
    hint = f" Did you mean {near[0]!r}?" if near else ""
    more = f"; {more}" if more else ""
    return UserError(f"unknown {kind} {name!r}.{hint} There are: {', '.join(known)}{more}.")


def lookup(kind: str, name: str, table: Mapping[str, T]) -> T:
    """`table[name]`, or an error that lists the names and the nearest one."""
    try:
        return table[name]
    except KeyError:
        raise unknown_name(kind, name, list(table)) from None


def _tell(text: str) -> None:
    with suppress(OSError):  # whoever reads a pipe may be gone
        print(text, file=sys.stderr, flush=True)


def _unread() -> bool:
    """Whether output goes to a pipe whose reader, such as head, has seen enough."""
    pipe = select.poll()
    pipe.register(sys.stdout.fileno(), 0)
    return bool(pipe.poll(0))  # nothing was asked for: only what is always told, errors


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """As a user would read it, without the place in our code that noticed it."""
    _tell(f"warning: {message}")


def _refusal(error: OSError) -> str:
    """What the system refused: the file, or where none is named, as of a full disk, the place."""
    if error.filename is not None:
        return f"cannot read or write {error.filename}: {error.strerror or error}"
    place = traceback.extract_tb(error.__traceback__)[-1]  # it may be a mistake of ours
    return f"{type(error).__name__}: {error} ({place.filename}, line {place.lineno})"


@contextmanager
def report_errors() -> Iterator[None]:
    """What goes wrong in this block is one message, and an exit code that says of which kind."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            yield
    except UserError as error:
        if not error.already_reported:
            _tell(f"error: {error}")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        if not _unread():
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _tell(f"error: {_refusal(error)}")
        sys.exit(1 if error.filename is None else UserError.exit_code)
    except KeyboardInterrupt as interrupt:
        if not getattr(interrupt, "already_reported", False):
            _tell(str(interrupt) or "interrupted")
        sys.exit(128 + getattr(interrupt, "number", signal.SIGINT))
