"""Mixed precision: hidden layers in bfloat16, everything else in float32."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

Precision = Literal["auto", "float32", "bfloat16"]

_HIDDEN_BFLOAT16: ContextVar[bool] = ContextVar("hidden_bfloat16", default=False)


@contextmanager
def hidden_bfloat16(enabled: bool = True) -> Iterator[None]:
    """Compute hidden layers in bfloat16 within this block, on this thread only.

    Training enables it for updates. Everywhere else, networks compute in the type of their weights.
    """
    token = _HIDDEN_BFLOAT16.set(enabled)
    try:
        yield
    finally:
        _HIDDEN_BFLOAT16.reset(token)


def is_hidden_bfloat16() -> bool:
    """Return whether hidden layers compute in bfloat16 here."""
    return _HIDDEN_BFLOAT16.get()
