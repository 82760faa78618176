"""Random cases: `make test` tries a few of them, `make test-hostile` all."""

import os
import random
from collections.abc import Sequence
from typing import Any

import pytest

SEED = int(os.environ.get("HOSTILE_SEED", "0"))
"""Seed of all cases. It is part of the summary and of the command that repeats a case."""


def shuffled(cases: Sequence[Any]) -> list[Any]:
    """Return the cases in random order."""
    return random.Random(SEED).sample(cases, len(cases))


def numbered(cases: Sequence[Any], short: int) -> pytest.MarkDecorator:
    """Parametrize a test by cases and a random generator for each of them.

    Args:
        cases: The cases, tuples of strings.
        short: How many of them are part of `make test`.
    """
    return pytest.mark.parametrize(
        ("case", "rng"),
        [
            pytest.param(
                case,
                random.Random(f"{SEED} {number} {case}"),
                id="-".join([f"{number:04d}", *case]),
                marks=[pytest.mark.hostile] if number >= short else [],
            )
            for number, case in enumerate(cases)
        ],
    )
