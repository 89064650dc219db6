"""The stepper in JupyterLab: its keys are its own, its cursor reaches the kernel."""

from __future__ import annotations

import json

import pytest

from tests.patience import until

pytestmark = pytest.mark.browser

RUN = """
from workbench.trace import Row
from workbench.views import stepper
link = dict(connection="c1", session=0, link="q", link_sender="broker", attach_no=1)
frame = dict(kind="flow", frame_id=0, from_peer="client", frame={"handle": 0, "link_credit": 3})
rows = [
    Row(run="r", seq=seq, t_us=500 * seq, vantage=vantage, event=event,
        protocol="amqp-1.0", ledger=ledger, ledger_source="own", **link, **frame)
    for seq, (vantage, event, ledger) in enumerate([
        ("client:r", "sent", {"delivery_count": 0, "link_credit": 3}),
        ("broker", "received", {"delivery_count": 0, "link_credit": 3}),
    ])
]
view = stepper(rows)
view
"""


def notebook(*sources: str) -> str:
    """A notebook with these code cells."""
    cell = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
    return json.dumps(
        {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
            "cells": [
                {**cell, "id": f"cell-{place}", "source": source}
                for place, source in enumerate(sources)
            ],
        }
    )


STATE = """() => {
    const content = window.jupyterapp.shell.currentWidget.content;
    return [content.widgets.length, content.mode, content.activeCellIndex];
}"""


def test_keys_move_the_stepper_and_not_the_notebook(lab_page):
    """Many of these are JupyterLab's keys too: with the stepper in focus they are ours alone."""
    (lab_page.root / "notebooks" / "keys.ipynb").write_text(notebook(RUN, ""), encoding="utf-8")
    lab_page.open("keys.ipynb")
    lab_page.run_all()
    root = lab_page.show_cell("cell-0").locator(".wbs")
    root.wait_for()
    where = root.locator(".wbs-where")
    root.get_by_role("button", name="one step on").click()
    assert where.inner_text().startswith("step 1 of 2")
    root.focus()
    before = lab_page.page.evaluate(STATE)
    keyboard = lab_page.page.keyboard
    for key in ("ArrowRight", "Home", "End", "ArrowLeft", "n", "p", " ", " ", "?", "Escape", "End"):
        keyboard.press(key)
    for key in ("a", "b", "m", "x"):  # a slip beside our keys must not cut a cell
        keyboard.press(key)
    assert where.inner_text().startswith("step 2 of 2")
    assert lab_page.page.evaluate(STATE) == before
    lab_page.assert_quiet()


@pytest.mark.slow
def test_the_cursor_reaches_the_kernel_and_comes_back(lab_page):
    """A step in the browser sets `cursor`; setting `cursor` in a cell moves the stepper."""
    probe = notebook(RUN, "print('cursor', view.cursor)", "view.cursor = 0")
    (lab_page.root / "notebooks" / "cursor.ipynb").write_text(probe, encoding="utf-8")
    lab_page.open("cursor.ipynb")
    lab_page.run_all()
    root = lab_page.show_cell("cell-0").locator(".wbs")
    root.wait_for()
    root.focus()
    lab_page.page.keyboard.press("End")
    where = root.locator(".wbs-where")
    assert where.inner_text().startswith("step 2 of 2")
    page = lab_page.page

    def told(index):
        page.evaluate(
            """async (index) => {
                const app = window.jupyterapp;
                app.shell.currentWidget.content.activeCellIndex = index;
                await app.commands.execute('notebook:run-cell');
            }""",
            index,
        )
        lab_page.wait_idle()
        return lab_page.show_cell(f"cell-{index}").inner_text()

    until(lambda: "cursor 2" in told(1))  # it is sent to the kernel at most ten times a second
    told(2)
    lab_page.show_cell("cell-0")
    page.wait_for_function(
        "() => document.querySelector('.wbs-where').textContent.startsWith('step 0 of 2')"
    )
    lab_page.assert_quiet()


@pytest.mark.slow
def test_the_stepper_follows_the_theme_of_the_page(lab_page):
    """Dark where JupyterLab is dark: it brings its own paper."""
    (lab_page.root / "notebooks" / "theme.ipynb").write_text(notebook(RUN), encoding="utf-8")
    lab_page.open("theme.ipynb")
    lab_page.run_all()
    root = lab_page.show_cell("cell-0").locator(".wbs")
    root.wait_for()
    assert root.get_attribute("data-theme") == "light"
    for name, theme in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
        lab_page.set_theme(name)
        lab_page.page.wait_for_function(
            "(theme) => document.querySelector('.wbs').dataset.theme === theme", arg=theme
        )
