"""The quickstart notebook, executed in a kernel."""

import re

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
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    shown = [output.data for output in outputs if "data" in output]
    html = "".join(str(data.get("text/html", "")) for data in shown)
    assert '<video controls loop autoplay muted src="data:video/mp4;base64,AAAA' in html
    assert ">hidden_dim</th>" in html  # all settings
    (curve,) = [data["image/png"] for data in shown if "image/png" in data]
    assert len(curve) > 5000
    text = "".join(str(data.get("text/plain", "")) for data in shown)
    assert "Agent(task='FetchReach', method='ddpg-mrn+tuned', seed=100, weights='latest'" in text
    # The line within an epoch is updated in place; the epochs have lines of their own.
    assert len(re.findall(r"epoch +\d/\d +cycle \d/4 ", text)) == 2  # of train and of learn
    assert re.search(r"epoch +3/3 +success 100%", text)
    printed = "".join(output.text for output in outputs if output.output_type == "stream")
    assert "Config.of('FetchReach', recipe='tuned', epochs=3, threads=1, cycles=4," in printed
    assert "reached: True" in printed
