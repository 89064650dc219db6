"""The stage in JupyterLab: what is done on the picture happens in the kernel and comes back."""

from __future__ import annotations

import pytest

from tests.browser.test_stepper_lab import notebook
from tests.patience import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RUN = """
from workbench.scenarios import run
from workbench.views.stage_widget import StageWidget
view = StageWidget(run("credit", parameters={"messages": 0}))
view
"""
TOLD = "print('branch', view.branch, [str(act) for act in view.run.actions], view.cursor)"


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
