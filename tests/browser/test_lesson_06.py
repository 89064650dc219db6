"""Lesson 06 as a learner meets it: two protocols above each other, by mouse and keyboard."""

import pytest

from tests.browser.test_lesson_01 import picture, said
from tests.browser.test_lesson_03 import answer, run_cell
from tests.browser.test_lesson_04 import press

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSON = "06_amqp091.ipynb"


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("lesson-06")


def test_a_blocked_connection_stands_above_one_that_goes_on(lab_page, pictures):
    """Credit on every hop as a screen reader hears it; both halves answer one question each."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_all()
    room = lesson.page.locator(".jp-WindowedPanel-outer").first.bounding_box()["height"]

    root = picture(lesson, "chain-step")
    assert root.bounding_box()["height"] < room
    lesson.page.keyboard.press("End")
    root.get_by_role("img", name="credit −200").first.wait_for()
    assert "channel 1 of c1 has deferred 4 grants" in said(root).lower()
    root.screenshot(path=pictures / "chain.png")
    assert "Right" in answer(lesson, "chain-takes", "messages", "400")

    root = picture(lesson, "lanes-step")
    lesson.page.keyboard.press("End")
    root.get_by_text("slow blocked: too many unconfirmed").wait_for()
    root.screenshot(path=pictures / "lanes.png")
    assert "Right" in answer(lesson, "other-lane", "messages", "0")
    assert "a stall holds the connection" in answer(lesson, "other-link", "messages", "0")
    asked = lesson.show_cell("other-link")
    asked.get_by_role("button", name="Show me").press("Enter")
    beside = asked.locator(".wst")
    beside.get_by_text("So far your rule and the rule give the same numbers").wait_for()
    beside.focus()
    lesson.page.keyboard.press("End")
    beside.get_by_text("Messages in the second queue: 1; by your rule 0.").first.wait_for()
    beside.screenshot(path=pictures / "show-me.png")
    assert "Act first" in run_cell(lesson, "check-passed")
    root = picture(lesson, "lanes-step")
    press(root, "publish slow")
    assert "came into the second" in run_cell(lesson, "check-passed")

    root = picture(lesson, "acks-step")
    lesson.page.keyboard.press("End")
    lesson.set_theme("JupyterLab Dark")
    lesson.page.locator(".wst[data-theme=dark]").first.wait_for(state="attached")
    root.screenshot(path=pictures / "acks-dark.png")
    lesson.assert_quiet()
