"""Validation of dataclasses against the types and bounds annotated on their fields."""

import math
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from mrn.utils.errors import UserError, unknown_name


@dataclass(frozen=True)
class Bounds:
    """Bounds of a numeric field; None means unbounded."""

    ge: float | None = None
    le: float | None = None
    lt: float | None = None


PositiveInt = Annotated[int, Bounds(ge=1)]
NonNegativeInt = Annotated[int, Bounds(ge=0)]
NonNegativeFloat = Annotated[float, Bounds(ge=0)]
Fraction = Annotated[float, Bounds(ge=0, le=1)]
Threads = Annotated[int, Bounds(ge=1, le=1024)]
Seed = Annotated[int, Bounds(ge=0, le=2**32 - 1)]


class Validated:
    """Mixin for dataclasses that validates types and bounds of all fields on creation."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self), include_extras=True)
        for item in fields(self):  # type: ignore[arg-type]
            hint, original = hints[item.name], getattr(self, item.name)
            value = _convert(hint, original)
            if value is not original:
                object.__setattr__(self, item.name, value)
            check(item.name, value, hint)


def check(name: str, value: Any, hint: Any) -> None:
    """Check a value against a type hint with optional bounds.

    Args:
        name: Name of the setting, for error messages.
        value: Value to check.
        hint: Type hint; `Annotated` may add `Bounds`.

    Raises:
        UserError: The value has the wrong type or is out of bounds.
    """
    origin, options = get_origin(hint), get_args(hint)
    if origin is Annotated:
        check(name, value, options[0])
        for bounds in options[1:]:
            if isinstance(bounds, Bounds):
                _check_bounds(name, value, bounds)
    elif origin in (Union, UnionType):
        if value is None and NoneType in options:
            return
        check(name, value, _matching(options, value))
    elif origin is Literal:
        if value not in options:
            raise unknown_name(name, str(value), list(options))
    elif origin is tuple and options[-1:] == (...,):
        if not isinstance(value, tuple):
            raise UserError(f"{name} must be a list, got {value!r}")
        for item in value:
            check(name, item, options[0])
    elif origin is dict:
        if not isinstance(value, dict):
            raise UserError(f"{name} must be a table of key-value pairs, got {value!r}")
    elif hint in (bool, int, float, str) or is_dataclass(hint):
        allowed = (int, float) if hint is float else hint
        # bool is a subclass of int, but not a number for users.
        if not isinstance(value, allowed) or (isinstance(value, bool) and hint is not bool):
            raise UserError(f"{name} must be of type {hint.__name__}, got {value!r}")
        if hint is str and not is_unicode(value):
            raise UserError(f"{name} must be valid Unicode text, got {value!r}")
        if hint is float and not _is_finite(value):
            raise UserError(f"{name} must be a finite number, got {value!r}")
    elif hint is not Any:
        raise UserError(
            f"{name} has the unsupported type {hint}: settings can be bool, int, float, str, "
            "Literal, a tuple of these such as tuple[int, ...], or one of these or None"
        )


def is_unicode(text: Any) -> bool:
    """Return whether text can be written to a file; JSON can contain lone surrogates."""
    try:
        return bool(text.encode("utf-8")) or not text
    except UnicodeEncodeError:
        return False


def check_unicode(name: str, folder: Path) -> None:
    """Check the path of a folder of runs: TensorBoard and trackers could not write to others.

    Raises:
        UserError: It is not valid Unicode; `name` identifies it.
    """
    if not is_unicode(str(folder)):
        raise UserError(
            f"{name} must be valid Unicode text, got {str(folder)!r}; rename the folder, or set "
            "PYTHONUTF8=1 if only the locale lacks its characters"
        )


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int too large for a float
        return False


def _check_bounds(name: str, value: float, bounds: Bounds) -> None:
    if bounds.ge is not None and value < bounds.ge:
        raise UserError(f"{name} must be at least {bounds.ge:g}, got {value!r}")
    if bounds.le is not None and value > bounds.le:
        raise UserError(f"{name} must be at most {bounds.le:g}, got {value!r}")
    if bounds.lt is not None and value >= bounds.lt:
        raise UserError(f"{name} must be below {bounds.lt:g}, got {value!r}")


def from_dict(cls: type[Any], data: Any, where: str) -> Any:
    """Build the dataclass `cls` from untrusted JSON or TOML data.

    Args:
        cls: The dataclass.
        data: Parsed data.
        where: File name for error messages.

    Raises:
        UserError: A field is missing, unknown or of the wrong type.
    """
    if not isinstance(data, dict):
        kind = type(data).__name__
        raise UserError(f"{where}: expected a table of key-value pairs, got {kind}")
    hints = get_type_hints(cls)
    known = {item.name: item for item in fields(cls)}
    try:
        if unknown := sorted(set(data) - set(known)):
            raise unknown_name("field", unknown[0], list(known))
        for name, item in known.items():
            if name not in data and item.default is MISSING and item.default_factory is MISSING:
                raise UserError(f"{name!r} is missing")
        values = {name: _convert(hints[name], value, where) for name, value in data.items()}
        return cls(**values)
    except UserError as error:
        if str(error).startswith(f"{where}: "):  # already prefixed by a nested dataclass
            raise
        raise UserError(f"{where}: {error}") from None


def _convert(hint: Any, value: Any, where: str | None = None) -> Any:
    """Convert NumPy scalars to Python numbers and lists to tuples.

    With `where`, also build nested dataclasses from dictionaries.
    """
    if isinstance(value, np.generic):  # for example from a loop over np.arange
        value = value.item()
    origin, options = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _convert(options[0], value, where)
    if origin in (Union, UnionType):
        return value if value is None else _convert(_matching(options, value), value, where)
    if where is not None and is_dataclass(hint) and not isinstance(value, hint):  # type: ignore[arg-type]
        return from_dict(hint, value, where)  # type: ignore[arg-type]
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(_convert(options[0], item, where) for item in value)
    return value


def _matching(options: tuple[Any, ...], value: Any) -> Any:
    """Return the type in a union that a value has, or the first type other than None."""
    kinds = [option for option in options if option is not NoneType]
    return next((kind for kind in kinds if _is_instance(value, kind)), kinds[0])


def _is_instance(value: Any, kind: Any) -> bool:
    kind = get_origin(kind) or kind
    return isinstance(kind, type) and isinstance(value, kind)
