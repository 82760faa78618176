"""The API reference of the site against the code: complete, and no names that are gone."""

import re
import runpy
from dataclasses import fields
from pathlib import Path
from pkgutil import resolve_name

import pytest

import mrn
import mrn.algorithms
import mrn.critics
import mrn.envs
import mrn.integrations.sb3
from mrn.algorithms import ALGORITHMS
from mrn.cli import commands
from mrn.config import GROUPS
from mrn.replay import ReplayConfig
from mrn.schedule import Schedule

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
API = (DOCS / "reference" / "api.md").read_text()
MODULES = (mrn, mrn.critics, mrn.algorithms, mrn.envs, mrn.integrations.sb3)
SETTINGS = [mrn.Config, Schedule, ReplayConfig, *(algo.Settings for algo in ALGORITHMS.values())]


@pytest.fixture(scope="module")
def reference() -> dict:
    return runpy.run_path(str(ROOT / "scripts" / "site_reference.py"))


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_api_reference(module):
    for name in module.__all__:
        paths = [f"{module.__name__}.{name}", f"mrn.{name}"]
        assert any(re.search(rf"^::: {re.escape(path)}$", API, re.M) for path in paths), name


def test_every_name_in_the_api_reference_exists_and_has_a_docstring():
    public = {(module.__name__, name) for module in MODULES for name in module.__all__}
    names = re.findall(r"^::: (\S+)$", API, re.M)
    assert len(names) == len(set(names)) > 30
    for name in names:
        value = resolve_name(name)
        assert tuple(name.rsplit(".", 1)) in public, name
        if callable(value) and hasattr(value, "__module__") and isinstance(value, type):
            assert value.__doc__, name


def test_every_command_and_option_is_in_the_reference(reference):
    page = reference["commands_page"]()
    for name in commands():
        assert re.search(rf"^### `mrn {name}`\n\n\w.+[.?]$", page, re.M), name
    assert {"train", "resume", "eval"} <= set(commands())
    assert re.search(r"^\| `--run-dir` \| .*\| \w.+\. \|$", page, re.M)
    rows = [row for row in page.splitlines() if row.startswith("| `")]
    assert len(rows) > 40
    for row in rows:
        assert re.search(r"\| \S.*\S \|$", row), row  # it has a description


@pytest.mark.parametrize("group", SETTINGS)
def test_every_setting_is_in_the_reference(reference, group):
    page = reference["settings_page"]()
    for item in fields(group):
        listed = re.search(rf"^\| `{item.name}` \| .+ \| .* \| .+\. \|$", page, re.M)
        assert bool(listed) is (item.name not in GROUPS or group is not mrn.Config), item.name


def test_settings_show_bounds_defaults_and_the_recipe_fast(reference):
    page = reference["settings_page"]()
    assert "| `discount` | float, ≥ 0, < 1 | `0.98` |  | " in page
    assert "| `num_envs` | int, ≥ 1, ≤ 100,000 | `20` | `10` | " in page
    assert "| `stop_at` | float, ≥ 0, ≤ 1 or None | `None` |  | " in page
    assert "| `goal_selection_strategy` | `future`, `final`, `episode` | `'future'` |  | " in page
    sac = page.partition("## `sac`")[2].partition("\n## ")[0]
    assert "| `action_penalty` | float, ≥ 0 | `0.0` | `0.0` | " in sac


PAGES = [
    "reference/api.md",
    "differences.md",
    "scale.md",
    "design.md",
    "../CONTRIBUTING.md",
    "../CHANGELOG.md",
]


@pytest.mark.parametrize("page", PAGES)
def test_names_that_pages_mention_exist(page):
    """Removed names are written without their package."""
    names = re.findall(r"`(mrn(?:\.\w+)+)[`(]", (DOCS / page).read_text())
    assert names
    for name in names:
        resolve_name(name)
