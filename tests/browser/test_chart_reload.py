"""A chart in a real JupyterLab, on a page that has been loaded anew beside a living kernel."""

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CELLS = {
    "imports": "seconds = 0\nfrom workbench import lattices, run, stage",
    "desk": "stage(run('credit', parameters={'policy': 'top-up-at-half', 'n': 4}), chart=True)",
    "lattice": "lattices(messages=3, grants=[3, 6])",
    "busy": "import time; time.sleep(seconds)",
}
RESTART = """async () => {
    const panel = window.jupyterapp.shell.currentWidget;
    await panel.sessionContext.session.kernel.restart();
}"""


@pytest.fixture
def page(lab_page, lab_root):
    """A notebook whose charts are cells of their own, all run."""
    notebook = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    )
    for name, source in CELLS.items():
        cell = nbformat.v4.new_code_cell(source)
        cell["id"] = name
        notebook.cells.append(cell)
    nbformat.write(notebook, lab_root / "notebooks" / "charts.ipynb")
    lab_page.open("charts.ipynb")
    lab_page.run_all()
    return lab_page


@pytest.mark.parametrize("cell", ["desk", "lattice"])
def test_a_chart_that_is_run_alone_after_a_reload_is_drawn(page, cell):
    """It brings what draws it; where that is there already, it is not brought again."""
    page.show_cell(cell).locator("canvas").first.wait_for()
    page.save()
    page.open("charts.ipynb")
    assert page.page.evaluate("typeof window.Bokeh") == "undefined"
    for again in (1, 2):
        page.run_cells(cell)
        shown = page.show_cell(cell)
        shown.locator("canvas").first.wait_for()
        assert shown.get_by_text("Click to show javascript error").count() == 0
        scripts = "[...document.scripts].filter((one) => one.text.length > 1_000_000).length"
        assert page.page.evaluate(scripts) == 1, again
    page.assert_quiet()


def test_a_chart_asks_anew_where_the_kernel_that_was_asked_is_gone(page):
    """It was busy when the page asked it for what draws a chart, and started again before that."""
    page.save()
    page.open("charts.ipynb")
    page.page.evaluate(
        """() => {
            const { content, sessionContext } = window.jupyterapp.shell.currentWidget;
            const code = `seconds = 600`;
            sessionContext.session.kernel.requestExecute({ code, silent: true });
            const named = (id) => content.widgets.findIndex((cell) => cell.model.id === id);
            content.activeCellIndex = named('lattice');
            content.extendContiguousSelectionTo(named('busy'));
            window.jupyterapp.commands.execute('notebook:run-cell');
        }"""
    )
    page.page.wait_for_function("globalThis.workbenchBokeh")
    page.page.evaluate(RESTART)
    page.wait_idle()
    assert page.page.evaluate("typeof window.Bokeh") == "undefined"
    page.run_all()
    page.show_cell("lattice").locator("canvas").first.wait_for()
