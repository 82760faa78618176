"""Settings that check themselves: types and limits are written on the fields of a dataclass."""

import math
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from mrn.utils.errors import UserError, unknown_name


@dataclass(frozen=True)
class Bounds:
    """The numbers that a field accepts; None for no limit."""

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
    """A dataclass that refuses values of the wrong type or out of range when it is made."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self), include_extras=True)
        for item in fields(self):  # type: ignore[arg-type]
            hint, given = hints[item.name], getattr(self, item.name)
            value = _convert(hint, given)
            if value is not given:
                object.__setattr__(self, item.name, value)
            check(item.name, value, hint)


def check(name: str, value: Any, hint: Any) -> None:
    """Refuse a value that a type hint, with the limits written on it, does not allow.

    Raises:
        UserError: Names the setting, what it accepts and what it got.
    """
    origin, options = get_origin(hint), get_args(hint)
    if origin is Annotated:
        check(name, value, options[0])
        for limits in options[1:]:
            if isinstance(limits, Bounds):
                _check_limits(name, value, limits)
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
            raise UserError(f"{name} must be a table of names and values, got {value!r}")
    elif hint in (bool, int, float, str) or is_dataclass(hint):
        allowed = (int, float) if hint is float else hint
        # bool is an int to Python, and no number to a user.
        if not isinstance(value, allowed) or (isinstance(value, bool) and hint is not bool):
            raise UserError(f"{name} must be of type {hint.__name__}, got {value!r}")
        if hint is float and not _is_finite(value):
            raise UserError(f"{name} must be a finite number, got {value!r}")
    elif hint is not Any:
        raise UserError(
            f"{name} is declared as {hint}, which no setting can be: declare it as bool, int, "
            "float, str, a Literal, any number of these such as tuple[int, ...], or one or None"
        )


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number too large for a float
        return False


def _check_limits(name: str, value: float, limits: Bounds) -> None:
    if limits.ge is not None and value < limits.ge:
        raise UserError(f"{name} must be at least {limits.ge:g}, got {value!r}")
    if limits.le is not None and value > limits.le:
        raise UserError(f"{name} must be at most {limits.le:g}, got {value!r}")
    if limits.lt is not None and value >= limits.lt:
        raise UserError(f"{name} must be below {limits.lt:g}, got {value!r}")


def from_dict(cls: type[Any], data: Any, where: str) -> Any:
    """Build the dataclass `cls` from JSON or TOML of unknown origin, checking names and types.

    Raises:
        UserError: A field is missing, unknown or of the wrong type; `where` names the file.
    """
    if not isinstance(data, dict):
        kind = type(data).__name__
        raise UserError(f"{where}: expected a table of names and values, got {kind}")
    hints = get_type_hints(cls)
    known = {item.name: item for item in fields(cls)}
    try:
        if strange := sorted(set(data) - set(known)):
            raise unknown_name("field", strange[0], list(known))
        for name, item in known.items():
            if name not in data and item.default is MISSING and item.default_factory is MISSING:
                raise UserError(f"{name!r} is missing")
        values = {name: _convert(hints[name], value, where) for name, value in data.items()}
        return cls(**values)
    except UserError as error:
        if str(error).startswith(f"{where}: "):  # from a dataclass within
            raise
        raise UserError(f"{where}: {error}") from None


def _convert(hint: Any, value: Any, where: str | None = None) -> Any:
    """Python's numbers of NumPy's, tuples of JSON's lists; where a file is named, its tables."""
    if isinstance(value, np.generic):  # as a loop over np.arange gives
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
    """Return the option of a union that a value is an instance of, else the first but None."""
    kinds = [option for option in options if option is not NoneType]
    return next((kind for kind in kinds if _is_instance(value, kind)), kinds[0])


def _is_instance(value: Any, kind: Any) -> bool:
    kind = get_origin(kind) or kind
    return isinstance(kind, type) and isinstance(value, kind)
