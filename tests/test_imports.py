"""Tests that imports in src/mrn follow the table of packages in docs/design.md."""

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "mrn"
EVERYTHING = "everything"


class Packages(NamedTuple):
    """Parsed table of packages. A package is named after the first entry of its row."""

    owner: dict[str, str]
    """Package of each file or folder in src/mrn, by its name."""
    may_import: dict[str, set[str]]
    """Other packages that a package may import, in the order of the table."""


def read_packages(page: str) -> Packages:
    """Parse the table: package | contents | may import."""
    owner, may_import = {}, {}
    section = page.partition("## Packages\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+) \| .+ \| (.+) \|$", section, re.M)
    for members, allowed in rows[1:]:
        names = [name.rstrip("/").removesuffix(".py") for name in re.findall(r"`(.+?)`", members)]
        package = names[0]
        owner |= dict.fromkeys(names, package)
        above = set(may_import)
        chosen = set() if allowed == "-" else set(allowed.split(", "))
        may_import[package] = above if chosen == {EVERYTHING} else chosen
        assert may_import[package] <= above, f"{package} may import only packages above it"
    return Packages(owner, may_import)


def find_imports(code: str, package: str, modules: set[str]) -> set[str]:
    """Return the modules of mrn that `code`, located in `package`, imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            outer = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*(outer if node.level else []), *filter(None, [node.module])])
            names = {f"{base}.{alias.name}" for alias in node.names}
            # `from mrn import config` imports mrn.config, `from mrn import train` imports mrn.
            found |= (names & modules) | ({base} if names - modules else set())
    return {name for name in found if name.partition(".")[0] == "mrn"}


def find_violations(source: Path, packages: Packages) -> list[str]:
    """Return the imports that the table forbids, and the files that it does not list."""
    files = sorted(source.rglob("*.py"))
    names = {file: (source.name, *file.relative_to(source).with_suffix("").parts) for file in files}
    modules = {".".join(parts).removesuffix(".__init__") for parts in names.values()}
    violations = []
    for file, (_, top, *rest) in names.items():
        where = "/".join((top, *rest))
        if top not in packages.owner:
            violations.append(f"{where} is not listed")
            continue
        package = packages.owner[top]
        for module in sorted(find_imports(file.read_text(), ".".join(names[file][:-1]), modules)):
            target = packages.owner.get([*module.split("."), "__init__"][1])
            if target != package and target not in packages.may_import[package]:
                violations.append(f"{where} ({package}) must not import {module} ({target})")
    return violations


@pytest.fixture(scope="module")
def packages() -> Packages:
    return read_packages((ROOT / "docs" / "design.md").read_text())


def test_imports_follow_the_table(packages):
    assert find_violations(SOURCE, packages) == []


def test_table_lists_all_files_and_folders(packages):
    existing = {path.stem for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    existing |= {path.stem for path in SOURCE.glob("*.py")}
    assert set(packages.owner) == existing


def test_table_keeps_the_main_rules(packages):
    """An edit of the page must not allow these imports."""
    may_import = packages.may_import
    assert may_import["utils"] == set()
    assert may_import["critics"] == may_import["envs"] == {"utils"}
    assert may_import["algorithms"] == {"utils", "critics"}
    assert "training" not in may_import["runs"]
    assert may_import["cli"] == set(may_import) - {"cli"}
    assert not any("cli" in allowed for allowed in may_import.values())


@pytest.mark.parametrize(
    ("file", "code", "message"),
    [
        ("critics/x.py", "from mrn.algorithms import DDPG", "(critics) must not import mrn.algo"),
        ("algorithms/x.py", "def f():\n    from mrn.replay.buffer import X", "mrn.replay.buffer"),
        ("algorithms/x.py", "if TYPE_CHECKING:\n    import mrn.envs", "must not import mrn.envs"),
        ("batch.py", "from mrn import config", "batch (utils) must not import mrn.config"),
        ("runs/x.py", "from mrn.agent import Agent", "must not import mrn.agent (training)"),
        ("studies/toy/x.py", "import mrn", "must not import mrn (__init__)"),
        ("studies/toy/x.py", "from mrn import train", "must not import mrn (__init__)"),
        ("training/x.py", "from ..cli import main", "must not import mrn.cli"),
        ("critics/heads/x.py", "from ... import config", "must not import mrn.config"),
        ("novel/x.py", "", "novel/x is not listed"),
    ],
)
def test_forbidden_import_is_found(file, code, message, packages, tmp_path):
    source = tmp_path / "mrn"
    for name in (file, "config.py", "cli/__init__.py"):
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code if name == file else "")
    (violation,) = find_violations(source, packages)
    assert message in violation


def test_allowed_imports_pass(packages, tmp_path):
    source = tmp_path / "mrn"
    source.mkdir()
    (source / "batch.py").write_text("import json\nfrom mrn.utils.errors import UserError\n")
    (source / "__init__.py").write_text("from mrn import batch\nfrom mrn.config import Config\n")
    (source / "cli").mkdir()
    (source / "cli" / "x.py").write_text("import mrn\nfrom mrn import load\nfrom . import y\n")
    assert find_violations(source, packages) == []
