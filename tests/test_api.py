"""docs/api.md against the code: nothing public is missing, nothing listed is gone."""

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
from mrn.config import Schedule
from mrn.replay import ReplayConfig
from mrn.utils.tables import with_section

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "api.md").read_text()
MODULES = (mrn, mrn.critics, mrn.algorithms, mrn.envs, mrn.integrations.sb3)


@pytest.fixture(scope="module")
def generator() -> dict:
    return runpy.run_path(str(DOCS / "api.py"))


def test_the_lists_are_those_of_the_code(generator):
    page = PAGE
    for name, text in generator["sections"]().items():
        page = with_section(page, name, text)
    assert page == PAGE, "run `make docs`"


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_listed_with_a_sentence(module):
    for name in module.__all__:
        assert re.search(rf"^- `{name}\b.*`: .+\.$", PAGE, re.M), name


def test_every_command_is_listed(generator):
    commands = generator["commands"]()
    assert {"train", "resume", "eval"} <= set(commands)
    for name in commands:
        assert re.search(rf"^- `mrn {name}\b.*`: ", PAGE, re.M), name


SETTINGS = [mrn.Config, Schedule, ReplayConfig, *(agent.Settings for agent in ALGORITHMS.values())]


@pytest.mark.parametrize("group", SETTINGS)
def test_every_setting_is_listed(group):
    groups = {"schedule", "replay", "algo_config"} if group is mrn.Config else set()
    for item in fields(group):
        place = rf"^`{item.name}`, " if item.name in groups else rf"^\| `{item.name}` \| "
        assert re.search(place, PAGE, re.M), item.name


@pytest.mark.parametrize("page", ["api.md", "design.md", "../CONTRIBUTING.md", "../CHANGELOG.md"])
def test_names_that_pages_mention_exist(page):
    """Names that are gone are told without their package in front."""
    names = re.findall(r"`(mrn(?:\.\w+)+)[`(]", (DOCS / page).read_text())
    assert names
    for name in names:
        resolve_name(name)


def test_names_that_are_listed_exist():
    for module in MODULES:
        section = PAGE.partition(f"{module.__name__} names: begin")[2].partition("<!--")[0]
        listed = re.findall(r"^- `(\w+)", section, re.M)
        assert listed == list(module.__all__)
        assert all(hasattr(module, name) for name in listed)
