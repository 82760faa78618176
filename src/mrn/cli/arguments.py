"""How a goal is written on the command line."""

from typing import Annotated

import tyro


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(number) for number in text.split(","))


Goal = Annotated[
    tuple[float, ...] | None,
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="X,Y,Z",
        instance_from_str=lambda words: _numbers(words[0]),
        is_instance=lambda value: value is None or isinstance(value, tuple),
        str_from_instance=lambda value: [",".join(map(str, value or ()))],
    ),
]
"""Numbers with commas between them, or None for no goal."""
