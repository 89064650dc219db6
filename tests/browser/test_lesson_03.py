"""Lesson 03 as a learner meets it: its key steps by keyboard alone, and by what stands in text."""

import re

import pytest

from tests.browser.test_lesson_01 import picture
from tests.browser.test_lesson_01 import said as pictured
from tests.patience import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSON = "03_drain.ipynb"


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("lesson-03")


def tab_to(page, target, most: int = 12) -> None:
    """Press Tab until a control has the focus: what a keyboard cannot reach is not there."""
    for _ in range(most):
        if target.evaluate("(node) => node === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{target} has not the focus after {most} times Tab")


def answer(lesson, cell_id: str, unit: str, text: str) -> str:
    """Commit and compare by keyboard: type, Enter, Tab to Compare, Space. Gives what is told."""
    field = lesson.show_cell(cell_id).get_by_role("textbox", name=unit)
    field.wait_for()
    box = lesson.page.get_by_role("textbox", name=unit)
    asked = lesson.show_cell(cell_id).locator(".widget-vbox").filter(has=box).last
    field.fill(text)
    field.press("Enter")
    asked.get_by_text(f"You say: {text}").wait_for()
    tab_to(lesson.page, asked.get_by_role("button", name="Compare"))
    lesson.page.keyboard.press("Space")
    told = asked.get_by_role("status").filter(has_text=re.compile("Right|Not quite"))
    told.first.wait_for()
    return told.first.inner_text()


def run_cell(lesson, cell_id: str) -> str:
    """Run a cell with Ctrl+Enter; gives what it shows."""
    cell = lesson.show_cell(cell_id)
    lesson.page.keyboard.press("Escape")
    lesson.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell')")
    lesson.wait_idle()
    told = cell.get_by_role("status").first
    until(told.inner_text)  # the kernel is done before the page has drawn what it sent
    return told.inner_text()


def read_on(root, words: str, most: int = 40) -> list[str]:
    """Step by the right arrow until a sentence has these words; gives what was read."""
    read = []
    for _ in range(most):
        root.page.keyboard.press("ArrowRight")
        read.append(root.locator(".wst-sentence").inner_text())
        if words in read[-1]:
            return read
    raise AssertionError(f"{words!r} was not said in {most} steps; last: {read[-1]}")


def do(root, name: str, amount: int | None = None) -> None:
    """Act by keyboard, from the list of all actions; then stand at the step of the action."""
    before = root.locator(".wst-strip").inner_text()
    root.focus()
    root.page.keyboard.press("a")
    if amount is None:
        root.locator(".wst-sheet").get_by_role("button", name=name).first.press("Enter")
    else:
        field = root.get_by_role("spinbutton", name=name)
        field.fill(str(amount))
        field.press("Enter")
    until(lambda: root.locator(".wst-strip").inner_text() != before)
    root.focus()
    root.page.keyboard.press("Escape")


def go_back(root, words: str) -> None:
    """Step back until the sentence has these words."""
    for _ in range(200):
        if words in root.locator(".wst-sentence").inner_text():
            return
        root.page.keyboard.press("ArrowLeft")
    raise AssertionError(f"{words!r} was not said")


def test_drain_echo_and_stop_by_keyboard(lab_page, pictures):
    """Every key step of the lesson without a mouse; what matters is read as text."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_all()

    # Ask: silence, then a message that the learner publishes.
    root = picture(lesson, "ask-step")
    lesson.page.keyboard.press("End")
    assert "0 unsettled" in root.inner_text()
    do(root, "publish")
    lesson.page.keyboard.press("End")
    assert "Receiver: delivery-count 1, link-credit 0" in pictured(root)

    # Drain: the sentences are read, counted and compared with the prediction.
    root = picture(lesson, "drain-step")
    read_on(root, "The drain request reaches the sender")
    read_on(root, "gives back its unused credit")
    jumped = re.search(r"Sender: delivery-count (\d+), link-credit 0", pictured(root))[1]
    root.screenshot(path=pictures / "drained.png")
    assert "drain is pause" in answer(lesson, "drain-brings", "messages", "0")
    asked = lesson.show_cell("drain-brings")
    tab_to(lesson.page, asked.get_by_role("button", name="Show me"))
    lesson.page.keyboard.press("Space")
    asked.get_by_text("after a drain the sender keeps its credit for later").first.wait_for()
    asked.locator(".wst").wait_for()
    assert "Right" in answer(lesson, "drain-brings", "delivery-count", jumped)

    # Echo: it is asked, answered, and the answer asks nothing.
    root = picture(lesson, "stop-step")
    read_on(root, "The sender answers")
    heard = read_on(root, "The receiver hears the state of the sender")
    assert any("reaches the receiver" in sentence for sentence in heard)
    root.screenshot(path=pictures / "stopped.png")
    assert "Right" in answer(lesson, "stop-step", "messages", "0")
    lesson.assert_quiet()


def test_time_out_pause_and_hand_over_by_keyboard(lab_page, pictures):
    """Sliders by arrow keys, actions by the list of all of them, and who got what as text."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_all()

    # The time-out: arrow keys on the slider, and the line tells another ending.
    desk = lesson.show_cell("timeout-desk")
    told = desk.get_by_role("status").first
    told.filter(has_text="crosses the drain").wait_for()
    desk.locator(".bk-Figure, .bk-panel-models-layout-Column, canvas").first.wait_for()
    desk.locator(".noUi-handle").first.focus()
    for _ in range(25):
        lesson.page.keyboard.press("ArrowRight")
    told.filter(has_text="comes in time").wait_for()
    desk.screenshot(path=pictures / "time-out.png")

    # Pause and resume, then let the check judge it.
    root = picture(lesson, "desk")
    do(root, "link credit", 30)
    go_back(root, "grant")
    for _ in range(2):
        read_on(root, "reaches the receiver, which counts it")
    do(root, "stop")
    lesson.page.keyboard.press("End")
    go_back(root, "The receiver hears the state of the sender")
    do(root, "link credit", 40)
    assert "Right" in run_cell(lesson, "check-paused")

    # Hand over: both ways in a table, and the last word of the graceful one on the stage.
    cell = lesson.show_cell("graceful-step")
    cell.get_by_role("row", name="graceful 0 to 4 5 to 9 no messages kept").wait_for()
    root = picture(lesson, "graceful-step")
    read = read_on(root, "closes the link “a” for good", 80)
    assert any("hears the state of the sender" in sentence for sentence in read)
    root.screenshot(path=pictures / "handed-over.png")

    # A real broker's drain: the request's step, and the answer some steps later.
    root = picture(lesson, "rabbit")
    assert "asks for a drain" in root.locator(".wst-sentence").inner_text()
    read_on(root, "gives back its unused credit", 10)
    lesson.assert_quiet()
