"""Optional dependencies: imported on first use, with an install command if missing."""

import importlib
import re
import shlex
from importlib import metadata
from types import ModuleType

from mrn.utils.errors import UserError
from mrn.utils.plugins import describe_error


def import_extra(module: str, extra: str) -> ModuleType:
    """Import a module of an optional dependency.

    Args:
        module: Full name of the module.
        extra: Extra of this package that installs it.

    Raises:
        UserError: The package is missing or fails to import; ends with the install command.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            raise UserError(f"{package} is missing: pip install {_requirements(extra)}") from None
        raise _broken(package, error, extra) from error
    except Exception as error:  # a broken package can raise anything
        raise _broken(package, error, extra) from error


def _requirements(extra: str) -> str:
    """Return the requirements of an extra, quoted for a shell.

    The packages themselves rather than 'mrn[EXTRA]', because the package of that name on PyPI is
    unrelated, and rather than '.[EXTRA]', because there may be no clone.
    """
    marker = re.compile(rf"""^(.*?)\s*;\s*extra == ['"]{re.escape(extra)}['"]$""")
    found = [marker.match(each) for each in metadata.requires("mrn") or []]
    return " ".join(shlex.quote(each[1]) for each in found if each)


def _broken(package: str, error: Exception, extra: str) -> UserError:
    return UserError(
        f"{package} cannot be imported: {describe_error(error)}. Install the missing dependency, "
        f"or reinstall the package: pip install --force-reinstall {_requirements(extra)}"
    )
