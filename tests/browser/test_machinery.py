"""Predictions, progress, recall, reset and share codes as a learner meets them in JupyterLab."""

import json

import nbformat
import pytest

pytestmark = pytest.mark.browser

CELLS = {
    "imports": (
        "from workbench import open_code, progress_log, recall, reset_lesson, run, share_code\n"
        "from workbench import stage\n"
        "from workbench.lessons.lesson_01 import predict"
    ),
    "ask": 'queue = run("credit", seed=1)\npredict.after_grant(queue, link_credit=3)',
    # Moved to its end, so that what is asked can be compared at once.
    "look": (
        'granted = stage(queue.act(queue.start_seq, "grant", link_credit=3))\n'
        "granted.cursor = granted.run.last"
    ),
    "again": 'recall("02")',
    "desk": "desk = stage(queue)\ndesk",
    "opened": "open_code(share_code(desk))",
    "log": "progress_log()",
    "reset": 'reset_lesson("01")',
}


@pytest.fixture
def notebook(lab_root) -> str:
    """A notebook with each part of the machinery in a cell of its own."""
    cells = [nbformat.v4.new_code_cell(source, id=name) for name, source in CELLS.items()]
    path = lab_root / "notebooks" / "machinery.ipynb"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
    return path.name


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("machinery")


def run_cell(lab, cell_id: str):
    """Run one cell again and give it."""
    cell = lab.show_cell(cell_id)
    lab.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell')")
    lab.wait_idle()
    return cell


def restart(lab) -> None:
    """A new kernel that knows nothing."""
    lab.page.evaluate(
        """async () => {
            const panel = window.jupyterapp.shell.currentWidget;
            await panel.sessionContext.session.kernel.restart();
        }"""
    )
    lab.wait_idle()


@pytest.mark.slow
def test_the_machinery_works_in_the_browser(lab_page, notebook, home, pictures):
    """By keyboard where it matters: answer, say how sure, restart, find it again, share, reset."""
    lab = lab_page
    lab.open(notebook)
    lab.run_all()

    # How sure: Tab from the field to the radio buttons, and on to Compare.
    asked = lab.show_cell("ask")
    field = asked.get_by_role("textbox", name="messages")
    field.wait_for()
    field.fill("10")
    field.press("Enter")
    asked.get_by_text("You say: 10").wait_for()
    lab.page.keyboard.press("Tab")
    lab.page.keyboard.press("Space")
    asked.screenshot(path=pictures / "sure.png")
    asked.get_by_role("radio", name="sure", exact=True, checked=True).wait_for()
    for _ in ("Change", "Compare"):  # the radio buttons are one group, of which one has the focus
        lab.page.keyboard.press("Tab")
    lab.page.keyboard.press("Enter")
    asked.get_by_text("You were sure here.").wait_for()
    asked.screenshot(path=pictures / "predict.png")
    kept = (home / "progress.jsonl").read_text(encoding="utf-8")
    (said,) = map(json.loads, kept.splitlines())
    assert (said["answer"], said["confidence"], said["right"]) == ("10", "sure", False)

    # A new kernel has it by itself, and the recall brings it back first.
    restart(lab)
    lab.run_all()
    log = lab.show_cell("log")
    log.get_by_text("You were sure and wrong here: 01/after-grant, 10").wait_for()
    log.screenshot(path=pictures / "log.png")
    with lab.page.expect_download() as download:
        log.get_by_role("link", name="Download a copy").click()
    copy = pictures / "copy.jsonl"
    download.value.save_as(copy)
    assert copy.read_text(encoding="utf-8") == kept
    again = lab.show_cell("again")
    again.get_by_text("From lesson 01.").first.wait_for()
    again.screenshot(path=pictures / "recall.png")
    assert "link-credit=" in again.get_by_text("From lesson 01.").first.locator("..").inner_text()

    # A server that forgets: the browser gives the answers back, also to who was asked already.
    (home / "progress.jsonl").unlink()
    restart(lab)
    lab.run_all()
    lab.show_cell("log").get_by_text("You were sure and wrong here").wait_for()
    lab.show_cell("ask").get_by_text("You said before: 10.").wait_for()
    assert (home / "progress.jsonl").read_text(encoding="utf-8") == kept

    # Forget, look, load the copy again.
    reset = lab.show_cell("reset")
    reset.get_by_role("button", name="Forget my answers of lesson 01").click()
    reset.get_by_text("1 answer of lesson 01 forgotten").wait_for()
    reset.screenshot(path=pictures / "reset.png")
    log = lab.show_cell("log")
    log.get_by_role("button", name="Refresh").click()
    log.get_by_text("Nothing predicted or checked yet.").wait_for()
    with lab.page.expect_file_chooser() as chooser:
        log.get_by_role("button", name="Load again").click()
    chooser.value.set_files(copy)
    log.get_by_text("1 answer read, 1 of them new here").wait_for()

    # Share the desk's branch, and open it again.
    desk = lab.show_cell("desk")
    desk.locator(".wst").focus()
    lab.page.keyboard.press("a")
    desk.get_by_role("spinbutton", name="link credit").fill("4")
    desk.get_by_role("spinbutton", name="link credit").press("Enter")
    desk.get_by_text("Action: grant 4").wait_for()
    desk.get_by_role("button", name="Share", exact=True).click()
    code = desk.get_by_role("textbox", name="share code")
    code.wait_for()
    assert code.input_value().startswith("WB1.")
    lab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    desk.get_by_role("button", name="Copy", exact=True).click()
    desk.get_by_text("Copied.").wait_for()
    assert lab.page.evaluate("() => navigator.clipboard.readText()") == code.input_value()
    desk.screenshot(path=pictures / "share.png")
    opened = run_cell(lab, "opened")
    opened.get_by_text("It is the run that was shared").wait_for()
    opened.get_by_text("Action: grant 4").first.wait_for()
    opened.screenshot(path=pictures / "opened.png")
    lab.assert_quiet()
