"""Optional dependencies: imported on first use, with an install hint if missing."""

import importlib
from types import ModuleType

from mrn.utils.errors import UserError
from mrn.utils.plugins import describe_error


def import_extra(module: str, extra: str) -> ModuleType:
    """Import a module of an optional dependency.

    Args:
        module: Full name of the module.
        extra: Extra of this package that installs it.

    Raises:
        UserError: The package is missing or fails to import; includes the install command.
    """
    package = module.partition(".")[0]
    # Not 'mrn[...]': outside a clone, pip would install the unrelated package of that name.
    source = f"-c constraints.txt '.[{extra}]' in a clone of the mrn repository"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            raise UserError(f"{package} is missing: pip install {source}") from None
        raise _broken(package, error, source) from error
    except Exception as error:  # a broken package can raise anything
        raise _broken(package, error, source) from error


def _broken(package: str, error: Exception, source: str) -> UserError:
    return UserError(
        f"{package} cannot be imported: {describe_error(error)}. Install the missing dependency, "
        f"or reinstall the package: pip install --force-reinstall {source}"
    )
