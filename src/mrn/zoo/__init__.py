"""Pretrained policies that ship with the package and are loaded as `zoo:NAME`.

Each is a folder next to this file, laid out like a run folder: settings, metrics and weights. The
weights are in half precision, without target networks. A card records how the policy was trained
and its success rates.
"""

import json
from pathlib import Path
from typing import Any

from mrn.utils.errors import unknown_name
from mrn.utils.tables import Table

PREFIX = "zoo:"
CARD = "card.json"

FOLDER = Path(__file__).parent

COLUMNS = ("name", "trained by", "episodes", "minutes", "EnvPool", "Gymnasium")


def entries() -> dict[str, dict[str, Any]]:
    """Return the cards of all policies, by name."""
    cards = sorted(FOLDER.glob(f"*/{CARD}"))
    return {card.parent.name: json.loads(card.read_text(encoding="utf-8")) for card in cards}


def find_entry(run: str | Path) -> Path | None:
    """Return the folder of `zoo:NAME`, or None for a path.

    Raises:
        UserError: No policy has that name.
    """
    if not str(run).startswith(PREFIX):
        return None
    name = str(run).removeprefix(PREFIX)
    if name not in entries():
        raise unknown_name("zoo policy", name, list(entries()), "`mrn zoo` describes them")
    return FOLDER / name


def table() -> Table:
    """Return how each policy was trained, and its success rate with interval per engine."""

    def success_rate(result: dict[str, float]) -> str:
        return f"{result['success']:.1%} [{100 * result['low']:.1f}, {100 * result['high']:.1f}]"

    rows = [
        (
            name,
            f"{card['method']}, seed {card['seed']}",
            f"{card['episodes']:,}",
            f"{card['minutes']:.1f}",
            success_rate(card["engines"]["envpool"]),
            success_rate(card["engines"]["gymnasium"]),
        )
        for name, card in entries().items()
    ]
    return COLUMNS, rows
