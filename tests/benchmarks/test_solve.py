"""Results of a recipe that has changed since are measured again."""

from benchmarks import solve
from mrn.recipes import RECIPES


def test_changed_recipe_counts_as_missing(monkeypatch):
    measured = {name: {"settings": solve.settings_of(name)} for name in ("fast", "sb3")}
    missing = [name for name in ("fast", "paper", "sb3") if solve.is_missing(measured, name)]
    assert missing == ["paper"]
    monkeypatch.setitem(RECIPES, "fast", RECIPES["fast"] | {"redraws": 3})
    assert solve.is_missing(measured, "fast")
    assert not solve.is_missing(measured, "sb3")
