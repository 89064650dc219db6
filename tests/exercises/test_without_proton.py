"""Lessons where the real client could not be compiled: one line, and everything else works."""

import os
from pathlib import Path

import pytest

from tests.notebooks.test_lessons import execute, faults

NOTEBOOKS = Path(__file__).resolve().parent.parent.parent / "notebooks"
LESSON = NOTEBOOKS / "01_credit.ipynb"
OWN_CLIENT = NOTEBOOKS / "11_own_client.ipynb"


@pytest.mark.notebook
@pytest.mark.slow
def test_the_lesson_runs_without_proton(tmp_path, monkeypatch, private_jupyter):
    """The cells of the real client say what is missing and are skipped; no cell fails."""
    (tmp_path / "proton.py").write_text("raise ImportError('not here')\n", encoding="utf-8")
    for name, value in private_jupyter.items():
        monkeypatch.setenv(name, value)
    path = os.pathsep.join([str(tmp_path), private_jupyter["PYTHONPATH"]])
    monkeypatch.setenv("PYTHONPATH", path)
    notebook = execute(LESSON)
    assert faults(notebook) == []
    cells = {cell.id: cell.get("outputs", []) for cell in notebook.cells}
    (said,) = cells["proton"]
    assert said.text.startswith("Skipped: python-qpid-proton is not installed.")
    assert said.text.count("\n") == 1
    assert cells["proton-predict"] == cells["proton-step"] == []


@pytest.mark.notebook
@pytest.mark.slow
def test_the_lesson_of_the_own_client_runs_without_proton(tmp_path, monkeypatch, private_jupyter):
    """Each client says that it is skipped and what will do instead; the wire is there for it."""
    (tmp_path / "proton.py").write_text("raise ImportError('not here')\n", encoding="utf-8")
    for name, value in private_jupyter.items():
        monkeypatch.setenv(name, value)
    path = os.pathsep.join([str(tmp_path), private_jupyter["PYTHONPATH"]])
    monkeypatch.setenv("PYTHONPATH", path)
    notebook = execute(OWN_CLIENT)
    assert faults(notebook) == []
    cells = {cell.id: cell.get("outputs", []) for cell in notebook.cells}
    assert "not installed" in cells["again"][0].text  # what has become of the first client
    assert "not installed" in cells["again"][-1].data["text/plain"]
    assert "not installed" in cells["proxy"][0].text
