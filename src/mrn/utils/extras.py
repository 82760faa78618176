"""Packages that not everyone needs: imported where they are used, with a hint where missing."""

import importlib
from types import ModuleType

from mrn.utils.errors import UserError
from mrn.utils.plugins import describe_error


def import_extra(module: str, extra: str) -> ModuleType:
    """Import a module of an optional package.

    Raises:
        UserError: It is not installed, or is and fails; says the command that installs it.
    """
    package = module.partition(".")[0]
    # Not 'mrn[...]': without a clone around, pip would fetch a package of others of that name.
    source = f"-c constraints.txt '.[{extra}]' in the folder of mrn's source"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            raise UserError(f"{package} is missing: pip install {source}") from None
        raise _broken(package, error, source) from error
    except Exception as error:  # whatever a package raises that does not fit this machine
        raise _broken(package, error, source) from error


def _broken(package: str, error: Exception, source: str) -> UserError:
    return UserError(
        f"{package} cannot be imported: {describe_error(error)}. Install what it says is missing, or "
        f"the package anew: pip install --force-reinstall {source}"
    )
