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
        # Not 'mrn[...]': without a clone around, pip would fetch a package of others of that name.
        raise UserError(
            f"{package} is missing: pip install -c constraints.txt '.[{extra}]' in the folder of "
            "mrn's source"
        ) from None
