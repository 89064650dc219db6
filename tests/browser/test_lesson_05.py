"""Lesson 05 as a learner meets it: the chain of valves, by mouse and keyboard, and as text."""

import pytest

from tests.browser.test_lesson_01 import picture, said
from tests.browser.test_lesson_03 import answer, run_cell
from tests.browser.test_lesson_04 import press

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSON = "05_publishers.ipynb"


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("lesson-05")


def valve(root, name: str):
    """A valve, as a screen reader hears it."""
    return root.get_by_role("img", name=name)


def test_the_valves_say_what_blocks_a_publisher(lab_page, pictures):
    """Where a queue hangs, credit runs out, too; of the closed valves one counts."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_all()
    room = lesson.page.locator(".jp-WindowedPanel-outer").first.bounding_box()["height"]
    assert lesson.show_cell("regrant").bounding_box()["height"] < room

    root = picture(lesson, "stall-step")
    assert root.bounding_box()["height"] < room
    lesson.page.keyboard.press("End")
    valve(root, "unconfirmed: closed, 255; this one limits").wait_for()
    valve(root, "link credit: closed, 0 of 170").wait_for()
    valve(root, "TCP: open").wait_for()
    assert "link-credit 0" in said(root)
    root.screenshot(path=pictures / "stalled.png")
    assert "Right" in answer(lesson, "regrant", "link-credit", "85")
    assert "Right" in answer(lesson, "stall-takes", "messages", "255")
    assert "one more confirmed" in answer(lesson, "one-confirmed", "messages", "256")

    root = picture(lesson, "desk")
    press(root, "alarm memory")
    root.screenshot(path=pictures / "desk.png")
    assert "Not yet in this branch" in run_cell(lesson, "check-collected")
    lesson.set_theme("JupyterLab Dark")
    lesson.page.locator(".wst[data-theme=dark]").first.wait_for(state="attached")
    picture(lesson, "both-step").screenshot(path=pictures / "dark.png")
    lesson.assert_quiet()
