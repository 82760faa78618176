"""The quickstart notebook, executed in a kernel."""

import nbformat
import pytest
from nbclient import NotebookClient

from mrn.envs.opengl import configure_opengl
from mrn.utils.errors import UserError
from tests.examples.helpers import EXAMPLES

NOTEBOOK = EXAMPLES / "quickstart.ipynb"


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_notebook_is_stored_without_outputs():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.outputs for cell in code_cells(notebook))
    assert all(cell.execution_count is None for cell in code_cells(notebook))


def test_notebook_shows_a_policy_and_learns(tmp_path, monkeypatch):
    try:
        configure_opengl()
    except UserError as error:
        pytest.skip(f"NOT TESTED with OpenGL: {error}")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the kernel chooses the inline backend
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    types = {name for output in outputs for name in output.get("data", {})}
    assert {"image/gif", "image/png"} <= types
    printed = "".join(output.text for output in outputs if output.output_type == "stream")
    assert " 100% success" in printed
    assert "reached: True" in printed
