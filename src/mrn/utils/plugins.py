"""What a user brings along: environments, critics and agents, named `package.module:name`."""

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, TypeVar

from mrn.utils.errors import UserError, unknown_name

T = TypeVar("T")


def import_plugin(module: str) -> ModuleType:
    """Import a user's module, from where Python finds modules or from the current folder.

    Raises:
        UserError: There is none, or it fails; says where.
    """
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # last: it hides nothing that is installed
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            raise UserError(
                f"there is no module {module!r}, neither installed nor in the current folder "
                f"({here})"
            ) from None
        raise UserError(f"cannot import {module!r}: {describe_error(error)}") from error
    except Exception as error:  # whatever a user's module raises, a syntax error for one
        raise UserError(f"cannot import {module!r}: {describe_error(error)}") from error


def find_plugin(
    kind: str, name: str, table: Mapping[str, T], fits: Callable[[Any], bool], wanted: str
) -> T:
    """`table[name]`, or what a user's module has under `package.module:name`.

    Raises:
        UserError: There is neither, or it does not fit; `wanted` says what would.
    """
    module, _, attribute = name.rpartition(":")
    if not module:
        if name not in table:
            raise unknown_name(
                kind, name, list(table), "or package.module:name for one of your own"
            )
        return table[name]
    imported = import_plugin(module)
    if not hasattr(imported, attribute):
        raise UserError(f"module {module!r} has no {attribute!r}, which is to be the {kind}")
    found: T = getattr(imported, attribute)
    if not fits(found):
        raise UserError(f"{name!r} is to be the {kind}, {wanted}, but is {found!r}")
    return found


def describe_error(error: BaseException) -> str:
    """An error of a user's code in one sentence, with the place in it that raised it."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError):
        return text  # which names its place
    frames = traceback.extract_tb(error.__traceback__)
    # Where a library raised it, the last line of the user's that called the library.
    theirs = [frame for frame in frames if not _is_library(frame.filename)] or frames
    return f"{text} ({theirs[-1].filename}, line {theirs[-1].lineno})" if theirs else text


def _is_library(filename: str) -> bool:
    ours = os.path.dirname(__file__)
    return "site-packages" in filename or filename.startswith((ours, "<", sys.base_prefix))
