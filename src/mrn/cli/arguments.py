"""Argument types shared by several commands."""

from typing import Annotated

import tyro


def _parse_numbers(text: str) -> tuple[float, ...]:
    return tuple(float(number) for number in text.split(","))


Goal = Annotated[
    tuple[float, ...] | None,
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="X,Y,Z",
        instance_from_str=lambda words: _parse_numbers(words[0]),
        is_instance=lambda value: value is None or isinstance(value, tuple),
        str_from_instance=lambda value: [",".join(map(str, value or ()))],
    ),
]
"""Comma-separated goal vector, or None."""
