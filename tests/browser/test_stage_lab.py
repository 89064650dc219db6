"""The stage in JupyterLab: what is done on the picture happens in the kernel and comes back."""

from __future__ import annotations

import json

import pytest

from tests.patience import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RUN = """
from workbench.scenarios import run
from workbench.views.stage_widget import StageWidget
view = StageWidget(run("credit", parameters={"messages": 0}))
view
"""
TOLD = "print('branch', view.branch, [str(act) for act in view.run.actions], view.cursor)"
STATE = """() => {
    const content = window.jupyterapp.shell.currentWidget.content;
    return [content.widgets.length, content.mode, content.activeCellIndex];
}"""


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


def test_keys_move_the_stage_and_not_the_notebook(lab_page):
    """Many of these are JupyterLab's keys too: with the stage in focus they are ours alone."""
    path = lab_page.root / "notebooks" / "keys.ipynb"
    path.write_text(notebook(RUN, ""), encoding="utf-8")
    lab_page.open("keys.ipynb")
    lab_page.run_all()
    root = lab_page.show_cell("cell-0").locator(".wst")
    root.wait_for()
    root.focus()
    before = lab_page.page.evaluate(STATE)
    now = root.locator(".wst-now")
    lab_page.page.keyboard.press("Home")
    begin = now.inner_text()
    for key in ("ArrowLeft", "a", "b", "n", "m", "x", "1", "1", "?", "Escape", "Home"):
        lab_page.page.keyboard.press(key)
    assert now.inner_text() == begin
    assert lab_page.page.evaluate(STATE) == before
    lab_page.assert_quiet()


def test_the_lab_s_keys_with_ctrl_reach_it_from_the_stage(lab_page):
    """Whatever of the stage has the focus: Ctrl+S saves the notebook, and the focus stays."""
    path = lab_page.root / "notebooks" / "ctrl.ipynb"
    path.write_text(notebook(RUN), encoding="utf-8")
    lab_page.open("ctrl.ipynb")
    lab_page.run_all()
    page, root = lab_page.page, lab_page.show_cell("cell-0").locator(".wst")
    root.wait_for()
    page.evaluate(
        """() => {
            window.__saves = 0;
            window.jupyterapp.commands.commandExecuted.connect((_, { id }) => {
                window.__saves += id === 'docmanager:save';
            });
        }"""
    )
    mark = root.locator("svg [tabindex='0']").first
    for place, focused in enumerate((mark, root.get_by_role("button", name="Log"), root), 1):
        focused.focus()
        page.keyboard.press("Control+s")
        assert page.evaluate("window.__saves") == place
        assert root.evaluate("node => node.contains(document.activeElement)")
    lab_page.assert_quiet()


def test_an_act_on_the_picture_is_a_branch_in_the_kernel(lab_page):
    """A message that is published on the picture is published in a run of the kernel's."""
    path = lab_page.root / "notebooks" / "stage.ipynb"
    path.write_text(notebook(RUN, TOLD), encoding="utf-8")
    lab_page.open("stage.ipynb")
    lab_page.run_all()
    stage = lab_page.show_cell("cell-0").locator(".wst")
    stage.wait_for()
    stage.locator("[data-act=publish]").first.click()
    branch = stage.locator("[data-branch='1']").first
    branch.wait_for(state="attached")

    def told() -> str:
        lab_page.page.evaluate(
            """async () => {
                const app = window.jupyterapp;
                app.shell.currentWidget.content.activeCellIndex = 1;
                await app.commands.execute('notebook:run-cell');
            }"""
        )
        lab_page.wait_idle()
        return lab_page.show_cell("cell-1").inner_text()

    until(lambda: "branch 1 ['publish(count=1)']" in told())
    lab_page.assert_quiet()


def test_a_second_view_of_a_stage_is_where_the_first_one_is(lab_page):
    """A cell that shows the same one again does not take the other back to its first branch."""
    path = lab_page.root / "notebooks" / "again.ipynb"
    path.write_text(notebook(RUN, "view"), encoding="utf-8")
    lab_page.open("again.ipynb")
    lab_page.run_all()
    shown = "[data-branch='1'][aria-pressed=true]"
    lab_page.show_cell("cell-0").locator(".wst [data-act=publish]").first.click()
    lab_page.show_cell("cell-0").locator(shown).wait_for(state="attached")
    lab_page.run_cells("cell-1")
    lab_page.show_cell("cell-1").locator(shown).wait_for(state="attached")
    assert lab_page.show_cell("cell-0").locator(shown).count() == 1
    lab_page.assert_quiet()


def test_a_chart_above_a_stage_leaves_its_view_when_a_branch_brings_another(lab_page):
    """What is open there stays, it goes on playing, and the next key is still the stage's."""
    path = lab_page.root / "notebooks" / "charted.ipynb"
    desk = "from workbench import run, stage\nstage(run('credit'), chart=True)"
    path.write_text(notebook(desk), encoding="utf-8")
    lab_page.open("charted.ipynb")
    lab_page.run_all()
    stage = lab_page.show_cell("cell-0").locator(".wst")
    stage.wait_for()
    view = stage.element_handle()
    stage.locator("[data-act=publish]").first.click()
    stage.locator("[data-branch='1'][aria-pressed=true]").wait_for(state="attached")
    lab_page.wait_idle()
    assert view.evaluate("one => one.isConnected && one.contains(document.activeElement)")
    lab_page.assert_quiet()
