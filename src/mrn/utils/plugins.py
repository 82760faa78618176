"""Custom environments, critics and algorithms, named `package.module:name`."""

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypeVar

from mrn.utils.errors import RunError, UserError, is_memory_error, unknown_name

T = TypeVar("T")
TRUST_FLAG = "--trust-code"
"""Option of commands that allows the modules named by a run to be imported."""


def import_plugin(module: str) -> ModuleType:
    """Import a user's module from the Python path or the current folder.

    Raises:
        UserError: The module does not exist or raises an error; includes the failing line.
    """
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # at the end, so that it shadows no installed package
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            raise UserError(
                f"there is no module {module!r}: it is neither installed nor in the current "
                f"folder ({here})"
            ) from None
        raise UserError(f"cannot import {module!r}: {describe_error(error)}") from error
    except (Exception, SystemExit) as error:  # user code can raise anything
        raise UserError(f"cannot import {module!r}: {describe_error(error)}") from error


def module_of(name: Any) -> str:
    """Return the module of a custom object, `package.module:name`, or "" for a built-in one."""
    return name.rpartition(":")[0] if isinstance(name, str) else ""


def is_loaded(name: str) -> bool:
    """Return whether the module of a custom object was already imported by this process."""
    return module_of(name) in sys.modules


def require_consent(
    where: str, names: Mapping[str, Any], passes_arguments: bool, trust_code: bool
) -> None:
    """Check that the user allows the code that a file would run.

    Modules that this process has already imported need no consent: their code has run. Arguments
    for an environment do, because its constructor may import what they name.

    Args:
        where: The file, for the error message.
        names: Untrusted names in the file, by what they refer to, for example "critic".
        passes_arguments: Whether the file has arguments for the environment's constructor.
        trust_code: Whether the user allows it.

    Raises:
        UserError: The user does not allow it; lists the modules and the option that would.
    """
    foreign = {
        kind: name for kind, name in names.items() if module_of(name) and not is_loaded(name)
    }
    if trust_code or not (foreign or passes_arguments):
        return
    if foreign:
        uses = " and ".join(f"the custom {kind} {name!r}" for kind, name in foreign.items())
        modules = sorted({module_of(name) for name in foreign.values()})
        runs = f"code of module {' and '.join(map(repr, modules))}"
    else:
        uses = f"env_kwargs for the environment {names.get('environment')!r}"
        runs = "its constructor with them"
    raise UserError(
        f"{where} uses {uses}; loading it runs {runs}. If you trust it, pass {TRUST_FLAG} "
        "(Python: trust_code=True)"
    )


def describe_module(module: ModuleType) -> str:
    """Return the name and file of a module, which may shadow a user's module of the same name."""
    file = getattr(module, "__file__", None) or "built into Python"
    return f"module {module.__name__!r} ({file})"


def find_plugin(
    kind: str, name: str, table: Mapping[str, T], fits: Callable[[Any], bool], wanted: str
) -> T:
    """Return `table[name]`, or the object that `package.module:name` refers to.

    Args:
        kind: What the name refers to, for error messages, for example "critic".
        name: Name in the table, or `package.module:name`.
        table: Built-in objects by name.
        fits: Whether an object has the required type.
        wanted: Description of the required type, for error messages.

    Raises:
        UserError: The name is unknown, or the object has the wrong type.
    """
    module, _, attribute = name.rpartition(":")
    if not module:
        if name not in table:
            raise unknown_name(
                kind, name, list(table), f"or package.module:name for a custom {kind}"
            )
        return table[name]
    imported = import_plugin(module)
    if not hasattr(imported, attribute):
        where = describe_module(imported)
        raise UserError(f"cannot find {kind} {name!r}: {where} has no {attribute!r}")
    found: T = getattr(imported, attribute)
    if not fits(found):
        raise UserError(f"{kind} {name!r} must be {wanted}, got {found!r}")
    return found


def is_custom(name: str) -> bool:
    """Return whether a name refers to an object outside this package: `package.module:name`."""
    return ":" in name


@contextmanager
def wrap_plugin_errors(kind: str, name: str) -> Iterator[None]:
    """Convert errors of a custom object to a `UserError` with the failing line.

    Memory errors and errors of built-in objects are raised unchanged.
    """
    try:
        yield
    except (Exception, SystemExit) as error:  # user code can raise anything
        if not is_custom(name) or is_memory_error(error):
            raise
        text = str(error) if isinstance(error, UserError) else describe_error(error)
        raise UserError(f"{kind} {name!r}: {text}") from error


@contextmanager
def forbid_exit() -> Iterator[None]:
    """Convert a `sys.exit` in custom code to an error; `sys.exit(0)` would look like success.

    Raises:
        RunError: Code in this block called `sys.exit`.
    """
    try:
        yield
    except SystemExit as error:
        raise RunError(f"custom code exited the program: {describe_error(error)}") from error


def describe_error(error: BaseException) -> str:
    """Return one line about an error in user code: type, message, and the failing line."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError):
        return text  # its message already includes the location
    frames = traceback.extract_tb(error.__traceback__)
    # If a library raised it, show the last line of user code that called the library.
    user_frames = [frame for frame in frames if not _is_library(frame.filename)] or frames
    if not user_frames:
        return text
    return f"{text} ({user_frames[-1].filename}, line {user_frames[-1].lineno})"


def _is_library(filename: str) -> bool:
    package = os.path.dirname(os.path.dirname(__file__))
    return "site-packages" in filename or filename.startswith((package, "<", sys.base_prefix))
