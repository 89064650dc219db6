"""Lesson 08 as a learner meets it: every connection under an alarm, as a picture and as text."""

import pytest

from tests.browser.test_lesson_01 import picture, said
from tests.browser.test_lesson_03 import answer, run_cell

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSON = "08_alarms.ipynb"


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("lesson-08")


def test_an_alarm_stops_who_publishes_and_a_newcomer_connects(lab_page, pictures):
    """The reader of c1 stops, those of the others read; c4 comes in and is stopped later."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_all()
    root = picture(lesson, "fills-step")
    lesson.page.keyboard.press("End")
    root.get_by_text("blocked: alarm").wait_for()
    assert "The reader of c1 has stopped" in said(root)
    assert "The reader of c2 reads" in said(root)
    root.screenshot(path=pictures / "fills.png")
    assert "Right" in answer(lesson, "who-is-told", "clients", "1")

    root = picture(lesson, "newcomer-step")
    lesson.page.keyboard.press("End")
    assert "The reader of c4 has stopped" in said(root)
    lesson.set_theme("JupyterLab Dark")
    lesson.page.locator(".wst[data-theme=dark]").first.wait_for(state="attached")
    root.screenshot(path=pictures / "newcomer-dark.png")
    assert "on still" in run_cell(lesson, "check-over")
    lesson.assert_quiet()
