"""Packages that not everyone needs: imported where they are used, with a hint where missing."""

import importlib
from types import ModuleType

from mrn.errors import UserError


def import_extra(module: str, extra: str) -> ModuleType:
    """Import a module of an optional package.

    Raises:
        UserError: It is not installed; says the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise UserError(f"{package} is missing: pip install 'mrn[{extra}]'") from None
