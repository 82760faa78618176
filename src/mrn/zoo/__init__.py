"""Trained policies that come with the package: `zoo:NAME` stands wherever one is loaded.

Each is a folder beside this file, as a run's: its settings, its metrics and its weights, these
without targets and in half precision, and a card that says how it was made and how good it is.
"""

import json
from pathlib import Path
from typing import Any

from mrn.utils.errors import unknown_name
from mrn.utils.tables import Table

PREFIX = "zoo:"
CARD = "card.json"

FOLDER = Path(__file__).parent

HEADS = ("name", "trained by", "episodes", "minutes", "EnvPool", "Gymnasium")


def entries() -> dict[str, dict[str, Any]]:
    """The card of each policy, by name."""
    cards = sorted(FOLDER.glob(f"*/{CARD}"))
    return {card.parent.name: json.loads(card.read_text()) for card in cards}


def find_entry(run: str | Path) -> Path | None:
    """The folder of `zoo:NAME`; None for anything else, which is a path.

    Raises:
        UserError: There is no policy of that name; lists those there are.
    """
    if not str(run).startswith(PREFIX):
        return None
    name = str(run).removeprefix(PREFIX)
    if name not in entries():
        raise unknown_name("policy of the zoo", name, list(entries()), "`mrn zoo` tells of them")
    return FOLDER / name


def table() -> Table:
    """What the cards say: how each was trained, and its success over many episodes in percent."""

    def share(found: dict[str, float]) -> str:
        return f"{found['success']:.1%} [{100 * found['low']:.1f}, {100 * found['high']:.1f}]"

    rows = [
        (
            name,
            f"{card['method']}, seed {card['seed']}",
            f"{card['episodes']:,}",
            f"{card['minutes']:.1f}",
            share(card["engines"]["envpool"]),
            share(card["engines"]["gymnasium"]),
        )
        for name, card in entries().items()
    ]
    return HEADS, rows
