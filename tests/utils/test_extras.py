"""Tests of optional dependencies that are missing or broken."""

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

import mrn
from mrn.utils.extras import import_extra


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return a function that installs a package named `extra` with the given code."""

    def install(code: str) -> None:
        (tmp_path / "extra").mkdir()
        (tmp_path / "extra" / "__init__.py").write_text(code)

    monkeypatch.syspath_prepend(tmp_path)
    yield install
    sys.modules.pop("extra", None)


@pytest.mark.parametrize("module", ["extra", "extra.part"])
def test_missing_package_shows_the_install_command(package, module):
    command = re.escape("pip install 'mrn-rl[onnx]'")
    with pytest.raises(mrn.UserError, match=f"^extra is missing: {command}$"):
        import_extra(module, "onnx")


def test_missing_submodule_counts_as_missing_package(package):
    package("")
    with pytest.raises(mrn.UserError, match="extra is missing"):
        import_extra("extra.part", "onnx")


def packages_of(extra: str) -> list[str]:
    """Return the requirements of an extra without this package, which stays installed."""
    with open(Path(__file__).parents[2] / "pyproject.toml", "rb") as file:
        requirements = tomllib.load(file)["project"]["optional-dependencies"][extra]
    return [each for each in requirements if not each.startswith("mrn-rl")]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (
            "raise ImportError('libgomp.so.1: cannot open shared object file')",
            r"ImportError: libgomp\.so\.1: cannot open shared object file",
        ),
        ("import no_such_part", "ModuleNotFoundError: No module named 'no_such_part'"),
        ("import extra_plugins", "ModuleNotFoundError: No module named 'extra_plugins'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_broken_package_is_not_reported_as_missing(package, code, reason):
    package(code)
    with pytest.raises(mrn.UserError, match=f"^extra cannot be imported: {reason} ") as caught:
        import_extra("extra", "onnx")
    message = str(caught.value)
    command = shlex.split(message[message.index("pip install") :])
    assert command == ["pip", "install", "--force-reinstall", *packages_of("onnx")]
    assert caught.value.__cause__ is not None
