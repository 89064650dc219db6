"""Lesson 09 as a learner meets it: a queue that fills, marks, and a window that slides."""

import re

import pytest

from .test_lesson_01 import picture, said
from .test_lesson_03 import run_cell
from .test_lesson_07 import chosen

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSON = "09_qpid.ipynb"


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("lesson-09")


def test_a_queue_fills_stops_and_goes_on(lab_page, pictures):
    """The window blocks the producer; four accepts by the button let everything go."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_cells("imports", "limit", "limit-step", "marks", "marks-step")
    root = picture(lesson, "limit-step")
    lesson.page.keyboard.press("End")
    assert "session ended: 506" in root.locator(".wst-picture").text_content()
    assert "Right" in chosen(lesson, "limit", "its session ends; the connection stays")

    root = picture(lesson, "marks-step")
    lesson.page.keyboard.press("End")
    assert "What blocks it: the window of incomplete transfers is full" in said(root)
    assert "holds 1 completion" in said(root)
    root.screenshot(path=pictures / "full.png")
    for number in range(1, 5):
        root.get_by_role("button", name=re.compile("^accept")).press("Enter")
        root.get_by_text(f"Branch {number}").first.wait_for()
        root.focus()
        lesson.page.keyboard.press("End")
    # With four left the window was emptied, and the last four of twelve came in.
    assert "window 4, 0 to send" in root.locator(".wst-picture").text_content()
    assert "8 messages. It is above its high watermark" in said(root)
    root.screenshot(path=pictures / "goes-on.png")
    lesson.assert_quiet()


def test_two_queues_three_protocols_and_the_checks(lab_page, pictures):
    """Choices, the table, the verdicts, and the picture in the dark."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_all()
    assert "Right" in chosen(lesson, "holds-most", "AMQP 0-9-1")
    table = lesson.show_cell("three-see").get_by_role("table")
    assert table.get_by_role("row").count() == 5
    table.screenshot(path=pictures / "table.png")
    assert "Put your answer" in run_cell(lesson, "check-window")
    for cell in ("free-step", "overshoot-step", "credit-step"):
        root = picture(lesson, cell)
        lesson.page.keyboard.press("End")
        root.screenshot(path=pictures / f"{cell}.png")
    lesson.set_theme("JupyterLab Dark")
    lesson.page.locator(".wst[data-theme=dark]").first.wait_for(state="attached")
    picture(lesson, "marks-step").screenshot(path=pictures / "dark.png")
    lesson.assert_quiet()
