"""Optional dependencies: imported on first use, with an install command if missing."""

import importlib
import re
import shlex
from importlib import metadata
from types import ModuleType

from mrn.utils.errors import UserError
from mrn.utils.plugins import describe_error
from mrn.version import DISTRIBUTION


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
            raise UserError(f"{package} is missing: {_install(extra)}") from None
        raise _broken(package, error, extra) from error
    except Exception as error:  # a broken package can raise anything
        raise _broken(package, error, extra) from error


def import_training(module: str) -> ModuleType:
    """Import a module of this package that needs the extra `train`.

    Raises:
        UserError: A package of the extra is missing; ends with the install command.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or "mrn").partition(".")[0]
        if missing == "mrn":
            raise
        raise UserError(f"{missing} is missing: {_install('train')}") from None


def _install(extra: str) -> str:
    """Return the command that installs an extra; the installed version of this package stays."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def _broken(package: str, error: Exception, extra: str) -> UserError:
    return UserError(
        f"{package} cannot be imported: {describe_error(error)}. Install the missing dependency, "
        f"or reinstall the package: pip install --force-reinstall {_requirements(extra)}"
    )


def _requirements(extra: str) -> str:
    """Return the packages of an extra, quoted for a shell; without those of other extras."""
    marker = re.compile(rf"""^(.*?)\s*;\s*extra == ['"]{re.escape(extra)}['"]$""")
    found = [marker.match(each) for each in metadata.requires(DISTRIBUTION) or []]
    packages = [each[1] for each in found if each]
    return " ".join(shlex.quote(each) for each in packages if not each.startswith(DISTRIBUTION))
