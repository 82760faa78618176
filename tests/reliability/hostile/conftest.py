import shutil

import pytest

from tests.reliability.hostile.sandbox import Sandbox, make_runs


@pytest.fixture(scope="package")
def template(tmp_path_factory):
    """Return a folder with two runs, of which every sandbox is a copy."""
    root = tmp_path_factory.mktemp("template")
    make_runs(root)
    return root


@pytest.fixture
def make_sandbox(template, tmp_path):
    """Return a function that creates a sandbox."""
    yield lambda name="root": Sandbox(tmp_path / name, template)
    shutil.rmtree(tmp_path)
