"""What is beside the stage, by keyboard and by name: lists, radio buttons, charts, questions."""

from __future__ import annotations

import pytest

from tests.browser.test_lab import notebook
from tests.patience import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LINES = """
from workbench.exercises.order_lines import on_flow_lines, order_lines
order_lines(**on_flow_lines())
"""
CHART = """
from workbench.exercises.timeout import timed_get
timed_get(publish_at_us=5000).desk(timeout_us=4500, latency_us=1000)
"""
ASKED = """
from dataclasses import replace
from workbench.exercises.predict import PredictionView
from workbench.exercises.progress import Progress
from workbench.exercises.question import Prediction, Question, Solution
from workbench.scenarios import run
solution = Solution(answer="that", reason="It is.", seen=run("credit").rows[-1])
question = Question(name="01/which", text="Which `one`?", solve=lambda: solution,
                    choices=("this", "that"), hints=("Look.",))
PredictionView(Prediction(question), Progress())
"""
WRITTEN = """
written = replace(question, name="01/many", choices=(),
                  solve=lambda: replace(solution, answer=123456))
PredictionView(Prediction(written), Progress())
"""
BUSY = """
import os, time
while os.path.exists("busy"):
    time.sleep(0.01)
"""
STATE = """() => {
    const content = window.jupyterapp.shell.currentWidget.content;
    return [content.widgets.length, content.mode, content.activeCellIndex];
}"""
FOCUSED = "node => node.contains(document.activeElement)"


@pytest.fixture
def walked(lab_page):
    """A notebook of these widgets, all run."""
    path = lab_page.root / "notebooks" / "keyboard.ipynb"
    path.write_text(notebook(LINES, CHART, ASKED, WRITTEN, BUSY), encoding="utf-8")
    lab_page.open("keyboard.ipynb")
    lab_page.run_all()
    return lab_page


@pytest.fixture
def busy(walked):
    """A kernel that answers nobody while this file is there; one far away answers late, too."""
    file = walked.root / "notebooks" / "busy"
    file.touch()
    walked.show_cell("cell-4")
    walked.page.evaluate("() => void window.jupyterapp.commands.execute('notebook:run-cell')")
    yield file
    file.unlink(missing_ok=True)


def test_whatever_can_be_chosen_is_chosen_by_keyboard(walked):
    """Arrows and letters stay with the widget that has the focus, and Escape leads back."""
    page, key = walked.page, walked.page.keyboard.press

    cell = walked.show_cell("cell-0")
    offered = cell.get_by_role("listbox", name="Lines to choose from")
    offered.focus()
    before = page.evaluate(STATE)
    for one in ("Home", "ArrowDown", "b", "ArrowDown"):
        key(one)
    assert offered.evaluate("list => list.selectedIndex") == 2
    line = offered.evaluate("list => list.value")
    cell.get_by_role("button", name="Put in").focus()
    key("Enter")
    used = cell.get_by_role("listbox", name="def on_flow")
    until(lambda: used.evaluate("list => list.value") == line)
    assert page.evaluate(STATE) == before
    key("Escape")
    assert cell.evaluate("node => node === document.activeElement")
    key("ArrowDown")
    assert page.evaluate(STATE)[2] == before[2] + 1

    cell = walked.show_cell("cell-2")
    asked = cell.get_by_role("radiogroup", name="Which one?")
    assert cell.get_by_role("radiogroup", name="How sure").count() == 1
    asked.get_by_role("radio", name="this").focus()
    before = page.evaluate(STATE)
    for one in ("Space", "ArrowDown", "b"):
        key(one)
    assert asked.get_by_role("radio", name="that").is_checked()
    assert not asked.get_by_role("radio", name="this").is_checked()
    key("Tab")  # one group is one stop
    assert cell.get_by_role("radiogroup", name="How sure").evaluate(FOCUSED)
    assert page.evaluate(STATE) == before
    walked.assert_quiet()


def test_a_chart_s_words_and_sliders_are_there_for_a_keyboard_and_by_name(walked):
    page = walked.page
    cell = walked.show_cell("cell-1")
    words = cell.locator("details", has_text="The chart in words")
    words.locator("summary").focus()
    before = page.evaluate(STATE)
    page.keyboard.press("Enter")
    assert words.locator("pre").is_visible()
    page.keyboard.press("Space")
    assert words.locator("pre").is_hidden()
    assert page.evaluate(STATE) == before
    for name in ("time-out", "round trip"):
        cell.get_by_role("slider", name=name).wait_for()
    walked.assert_quiet()


def test_a_button_that_goes_leaves_the_focus_in_the_question(walked):
    """The last hint, and giving up: what is disabled or hidden has handed the focus on."""
    page = walked.page
    cell = walked.show_cell("cell-2")
    cell.get_by_role("radio", name="this").check()
    for name in ("Hint 1 of 1", "Commit", "Compare", "I give up"):
        button = cell.get_by_role("button", name=name, disabled=False)
        button.focus()  # waits for it: a key on a button that is not enabled yet does nothing
        page.keyboard.press("Enter")
        walked.wait_idle()
        if name == "Hint 1 of 1":
            cell.get_by_role("button", name="No more hints").wait_for()
        if name == "I give up":
            button.wait_for(state="hidden")
        assert cell.get_by_role("button").evaluate_all(
            "all => all.includes(document.activeElement)"
        ), name
    walked.assert_quiet()


@pytest.mark.parametrize("commits", ["Enter", "Commit"])
def test_what_was_typed_is_whole_when_it_is_committed(walked, busy, commits):
    page, cell = walked.page, walked.show_cell("cell-3")
    cell.get_by_role("textbox", name="messages").focus()
    page.keyboard.type("123456")
    if commits == "Enter":
        page.keyboard.press("Enter")
    else:
        cell.get_by_role("button", name="Commit").click()
    busy.unlink()
    cell.get_by_text("You say: 123456").wait_for()


@pytest.mark.parametrize("by", ["key", "mouse"])
def test_what_was_chosen_last_is_committed(walked, busy, by):
    page, cell = walked.page, walked.show_cell("cell-2")
    cell.get_by_role("radio", name="this").focus()
    for one in ("Space", "ArrowDown", "ArrowUp", "ArrowDown"):
        page.keyboard.press(one)
    commit = cell.get_by_role("button", name="Commit")
    press = {"key": lambda: commit.press("Enter"), "mouse": commit.click}
    press[by]()
    busy.unlink()
    cell.get_by_text("You say: that").wait_for()


def test_the_line_that_was_chosen_last_is_put_in(walked, busy):
    page, cell = walked.page, walked.show_cell("cell-0")
    offered = cell.get_by_role("listbox", name="Lines to choose from")
    offered.focus()
    for one in ("Home", "ArrowDown", "ArrowDown"):
        page.keyboard.press(one)
    line = offered.evaluate("list => list.value")
    cell.get_by_role("button", name="Put in").click()
    busy.unlink()
    used = cell.get_by_role("listbox", name="def on_flow")
    until(lambda: used.evaluate("list => [...list].map(one => one.value)") == [line])
