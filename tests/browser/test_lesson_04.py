"""Lesson 04 as a learner meets it: windows on the picture, by mouse and keyboard, and as text."""

import re

import pytest

from tests.browser.test_lesson_01 import picture, said, send, where
from tests.browser.test_lesson_03 import answer, run_cell
from tests.patience import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSON = "04_windows.ipynb"


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("lesson-04")


def act(root, do) -> None:
    """Do something on the picture, and stand at the end of the branch that comes of it."""
    strip = root.locator(".wst-strip")
    before = strip.inner_text()
    do()
    until(lambda: strip.inner_text() != before)
    root.focus()
    root.page.keyboard.press("End")


def press(root, name: str) -> None:
    """Press a button of the picture, by keyboard."""
    button = root.get_by_role("button", name=name, exact=True).first
    act(root, lambda: button.press("Enter"))


def test_a_window_is_drawn_and_acted_on(lab_page, pictures):
    """A message stops in its middle; credit frees nothing, a window does; the formula is told."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_all()
    room = lesson.page.locator(".jp-WindowedPanel-outer").first.bounding_box()["height"]
    assert lesson.show_cell("stops-at").bounding_box()["height"] < room

    root = picture(lesson, "stops-at-step")
    assert root.bounding_box()["height"] < room
    lesson.page.keyboard.press("End")
    root.get_by_text("blocked: session window full").wait_for()
    assert root.get_by_text("1 credit in use: 3 of its frames so far").count() == 1
    root.screenshot(path=pictures / "stopped.png")
    assert "Right" in answer(lesson, "stops-at", "frames", "3")

    # Credit does not help, and a wrong answer is shown beside the rule.
    root = picture(lesson, "stops-at-step")
    lesson.page.keyboard.press("End")
    act(root, lambda: send(root, 5))
    assert root.get_by_text("blocked: session window full").count() == 1
    assert "credit opens the window" in answer(lesson, "more-credit", "frames", "3")
    asked = lesson.show_cell("more-credit")
    asked.get_by_role("button", name="Show me").press("Enter")
    shown = asked.locator(".wst")
    shown.get_by_text("Two rules").wait_for()
    shown.scroll_into_view_if_needed()
    shown.focus()
    lesson.page.keyboard.press("End")
    shown.get_by_text("3 too many").wait_for()
    assert shown.bounding_box()["height"] < room
    shown.screenshot(path=pictures / "two-rules.png")

    # The formula with its numbers, where the flow arrives.
    root = picture(lesson, "worked-out-step")
    for _ in range(60):
        lesson.page.keyboard.press("ArrowRight")
        if "The broker hears" in root.locator(".wst-sentence").inner_text():
            break
    assert "2³²−2 + 8 − 4 ≡ 2" in root.locator(".wst-formula").inner_text()
    root.screenshot(path=pictures / "formula.png")
    assert "the window is what the flow says" in answer(lesson, "worked-out", "frames", "8")
    lesson.assert_quiet()


def test_an_alarm_and_a_second_session_by_keyboard(lab_page, pictures):
    """Two windows are drawn where there are two; the check agrees when the queue is empty."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_all()

    root = picture(lesson, "huge-step")
    lesson.page.keyboard.press("End")
    root.get_by_text("251 in the session").wait_for()
    assert "Right" in answer(lesson, "huge", "messages", "256")
    root = picture(lesson, "huge-step")
    lesson.page.keyboard.press("End")
    press(root, "begin session")
    root.get_by_text("session 2's").wait_for()
    root.screenshot(path=pictures / "express.png")

    root = picture(lesson, "alarm-desk")
    press(root, "alarm memory")
    act(root, lambda: send(root, 20))
    press(root, "acknowledge")
    press(root, "publish")
    root.screenshot(path=pictures / "alarm.png")
    assert "Right" in run_cell(lesson, "check-alarm")

    root = picture(lesson, "tolerated-step")
    before = where(root)
    lesson.page.keyboard.press("ArrowRight")
    assert where(root) == before + 1
    assert "window-violation" in root.locator(".wst-sentence").inner_text()
    assert re.search(r"blocked: \w+", root.inner_text())
    assert "Right" in answer(lesson, "tolerated", "frames", "400")

    root = picture(lesson, "rabbit-step")
    assert "link-credit 0" in said(root)
    lesson.set_theme("JupyterLab Dark")
    lesson.page.locator(".wst[data-theme=dark]").first.wait_for(state="attached")
    root.screenshot(path=pictures / "rabbit-dark.png")
    lesson.assert_quiet()
