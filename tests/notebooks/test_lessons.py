"""Every lesson runs from its first cell to its last in a fresh kernel, and says nothing wrong."""

import os
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
import pytest
from nbclient import NotebookClient

from tests.patience import TIMEOUT_S

REPO = Path(__file__).resolve().parent.parent.parent
NOTEBOOKS = sorted((REPO / "notebooks").glob("*.ipynb"))
# One starts a second Java, another real servers, the others measure many runs.
LONG = (
    "02_race",
    "03_drain",
    "04_windows",
    "05_publishers",
    "06_amqp091",
    "07_quorum",
    "08_alarms",
    "09_qpid",
    "10_million",
    "11_own_client",
    "12_capstone",
)
LESSONS = [
    pytest.param(path, marks=pytest.mark.slow if path.stem in LONG else (), id=path.stem)
    for path in NOTEBOOKS
]
CELL_TIMEOUT_S = 300  # Spark's first question compiles and loads much
WIDGET = "application/vnd.jupyter.widget-view+json"


def execute(path: Path, **variables: str):
    """Run a copy of a notebook that lives in memory only; the file stays as it is.

    Args:
        path: the notebook.
        **variables: of its kernel's environment, beside those of this process.
    """
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as root:  # the map makes working copies beside the lessons
        folder = shutil.copytree(REPO / "notebooks", Path(root) / "notebooks")
        (Path(root) / "data").symlink_to(REPO / "data")
        client = NotebookClient(
            notebook,
            timeout=CELL_TIMEOUT_S,
            startup_timeout=TIMEOUT_S,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
        )
        client.execute(env={**os.environ, **variables})
    return notebook


@pytest.fixture(autouse=True)
def _private(monkeypatch, private_jupyter):
    """Neither the user's Jupyter settings nor their IPython profile have a say."""
    for name, value in private_jupyter.items():
        monkeypatch.setenv(name, value)


def faults(notebook) -> list[str]:
    """Give what a learner would stumble over in an executed notebook."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        tags = cell.metadata.get("tags", [])
        kinds = [output.output_type for output in cell.outputs]
        for output in cell.outputs:
            if output.output_type == "stream" and output.name == "stderr":
                found.append(f"{cell.id}: on stderr: {output.text[:300]}")
        if ("raises-exception" in tags) != ("error" in kinds):
            found.append(f"{cell.id}: tagged raises-exception or not, it ended as {kinds}")
        if "widget" in tags:
            bundles = [output.data for output in cell.outputs if "data" in output]
            widgets = [bundle for bundle in bundles if WIDGET in bundle]
            if not widgets:
                found.append(f"{cell.id}: shows no widget, only {kinds}")
            elif not all(bundle.get("text/plain") for bundle in widgets):
                found.append(f"{cell.id}: its widget leaves no text behind")
            elif not all(bundle.get("text/html") for bundle in bundles if WIDGET in bundle):
                found.append(f"{cell.id}: its widget leaves no still behind")
    return found


@pytest.mark.notebook
@pytest.mark.parametrize("path", LESSONS)
def test_the_lesson_runs(path):
    """No error, nothing on stderr, and each cell that promises a widget shows one."""
    before = path.read_bytes()
    assert faults(execute(path)) == []
    assert path.read_bytes() == before


@pytest.mark.notebook
@pytest.mark.slow
def test_the_lesson_with_spark_reads_without_java():
    """Every cell runs, every answer is there and says that it was recorded."""
    done = execute(REPO / "notebooks" / "10_million.ipynb", WORKBENCH_JAVA="none")
    assert faults(done) == []
    shown = {
        cell.id: " ".join(output.data.get("text/plain", "") for output in cell.outputs
                          if "data" in output)
        for cell in done.cells if cell.cell_type == "code"
    }  # fmt: skip
    assert "goes on with recorded answers" in shown["start"]
    for cell_id in ("captured", "rate-chart", "ask", "held-chart", "lost"):
        assert "recorded. There is no Spark here" in shown[cell_id], cell_id
    assert "link-credit" in shown["captured"]
    assert "A query needs Spark" in shown["query"]
    assert re.match(r"orders\nrow \d+ · t = ", shown["open-worst"])


@pytest.mark.notebook
def test_what_goes_wrong_in_a_lesson_is_noticed(tmp_path):
    """The check itself sees stderr, a missing widget and a promised error that did not come."""
    cell = nbformat.v4.new_code_cell
    notebook = nbformat.v4.new_notebook(
        cells=[
            cell("import sys; print('lost', file=sys.stderr)", id="stderr"),
            cell("1 + 1", id="no-widget", metadata={"tags": ["widget"]}),
            cell("2 + 2", id="no-error", metadata={"tags": ["raises-exception"]}),
            cell("import ipywidgets as w; w.Text()", id="no-still", metadata={"tags": ["widget"]}),
            cell(
                "from workbench import reset_lesson\nreset_lesson('01')",
                id="ok",
                metadata={"tags": ["widget"]},
            ),
        ]
    )
    path = tmp_path / "faulty.ipynb"
    nbformat.write(notebook, path)
    assert [fault.split(":")[0] for fault in faults(execute(path))] == [
        "stderr", "no-widget", "no-error", "no-still",
    ]  # fmt: skip
