"""Who may know whom: the imports of src/mrn against the table of rooms in docs/design.md."""

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "mrn"
EVERYTHING = "everything"


class Rooms(NamedTuple):
    """The table of rooms."""

    of: dict[str, str]
    """The room of each file or folder, by its name in src/mrn."""
    may_know: dict[str, set[str]]
    """The rooms that a room may import from, itself aside; in the order of the table."""


def read_rooms(page: str) -> Rooms:
    """Take the table from the page: room | question | rooms it may know."""
    of, may_know = {}, {}
    section = page.partition("## Rooms\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+) \| .+ \| (.+) \|$", section, re.M)
    for members, known in rows[1:]:
        names = [name.rstrip("/").removesuffix(".py") for name in re.findall(r"`(.+?)`", members)]
        room = members.partition(":")[0] if ":" in members else names[0]
        of |= dict.fromkeys(names, room)
        above = set(may_know)
        chosen = set() if known == "-" else set(known.split(", "))
        may_know[room] = above if chosen == {EVERYTHING} else chosen
        assert may_know[room] <= above, f"{room} may know only rooms above it"
    return Rooms(of, may_know)


def imports(code: str, package: str, modules: set[str]) -> set[str]:
    """Modules of mrn that some code imports, anywhere in it; `package` is the one it stands in."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            outer = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*(outer if node.level else []), *filter(None, [node.module])])
            whole = {f"{base}.{alias.name}" for alias in node.names}
            # `from mrn import tables` knows the tables, `from mrn import train` the front door.
            found |= (whole & modules) | ({base} if whole - modules else set())
    return {name for name in found if name.partition(".")[0] == "mrn"}


def violations(source: Path, rooms: Rooms) -> list[str]:
    """What the table does not allow: imports, and files that stand in no room."""
    files = sorted(source.rglob("*.py"))
    names = {file: (source.name, *file.relative_to(source).with_suffix("").parts) for file in files}
    modules = {".".join(parts).removesuffix(".__init__") for parts in names.values()}
    wrong = []
    for file, (_, top, *rest) in names.items():
        where = "/".join((top, *rest))
        if top not in rooms.of:
            wrong.append(f"{where} stands in no room")
            continue
        room = rooms.of[top]
        for module in sorted(imports(file.read_text(), ".".join(names[file][:-1]), modules)):
            target = rooms.of.get([*module.split("."), "__init__"][1])
            if target != room and target not in rooms.may_know[room]:
                wrong.append(f"{where} ({room}) must not import {module} ({target})")
    return wrong


@pytest.fixture(scope="module")
def rooms() -> Rooms:
    return read_rooms((ROOT / "docs" / "design.md").read_text())


def test_no_room_knows_one_it_should_not(rooms):
    assert violations(SOURCE, rooms) == []


def test_the_page_lists_what_is_there(rooms):
    there = {path.stem for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    there |= {path.stem for path in SOURCE.glob("*.py")}
    assert set(rooms.of) == there


def test_the_table_says_what_it_must(rooms):
    """A slip on the page must not open a door."""
    assert rooms.may_know["tools"] == set()
    assert rooms.may_know["critics"] == rooms.may_know["envs"] == {"tools"}
    assert rooms.may_know["agents"] == {"tools", "critics"}
    assert rooms.may_know["cli"] == set(rooms.may_know) - {"cli"}
    assert not any("cli" in known for known in rooms.may_know.values())


@pytest.mark.parametrize(
    ("file", "code", "message"),
    [
        (
            "critics/x.py",
            "from mrn.algorithms import DDPG",
            "(critics) must not import mrn.algorithms",
        ),
        ("agents/x.py", "def f():\n    from mrn.replay.buffer import X", "mrn.replay.buffer"),
        ("agents/x.py", "if TYPE_CHECKING:\n    import mrn.envs", "must not import mrn.envs"),
        ("files.py", "from mrn import config", "files (tools) must not import mrn.config"),
        ("studies/toy/x.py", "import mrn", "must not import mrn (__init__)"),
        ("studies/toy/x.py", "from mrn import train", "must not import mrn (__init__)"),
        ("training/x.py", "from ..cli import main", "must not import mrn.cli"),
        ("critics/heads/x.py", "from ... import config", "must not import mrn.config"),
        ("novel/x.py", "", "novel/x stands in no room"),
    ],
)
def test_a_forbidden_import_is_found(file, code, message, rooms, tmp_path):
    source = tmp_path / "mrn"
    for name in (file, "config.py", "cli/__init__.py"):
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code if name == file else "")
    (found,) = violations(source, rooms)
    assert message in found


def test_allowed_imports_are_not_found(rooms, tmp_path):
    source = tmp_path / "mrn"
    source.mkdir()
    (source / "tables.py").write_text("import json\nfrom mrn.utils.errors import UserError\n")
    (source / "__init__.py").write_text("from mrn import tables\nfrom mrn.config import Config\n")
    (source / "cli").mkdir()
    (source / "cli" / "x.py").write_text("import mrn\nfrom mrn import load\nfrom . import y\n")
    assert violations(source, rooms) == []
