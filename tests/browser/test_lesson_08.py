"""Lesson 08 as a learner meets it: alarms, a brake that asks, a queue that sinks, a mirror."""

import re

import pytest

from tests.browser.test_lesson_01 import picture, said
from tests.browser.test_lesson_03 import answer, run_cell

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSON = "08_alarms.ipynb"


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("lesson-08")


def act(lesson, root, name: str, branch: int) -> None:
    """Click an act on the picture, and wait for its branch; then stand at its end."""
    root.get_by_role("button", name=re.compile(name)).first.click()
    root.get_by_text(f"Branch {branch}").first.wait_for()
    root.focus()
    lesson.page.keyboard.press("End")


def test_the_lesson_is_walked_by_mouse(lab_page, pictures):
    """From the alarm to the mirror that blocks; two of the tasks are solved on the picture."""
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
    assert "Act first" in run_cell(lesson, "check-over")

    root = picture(lesson, "brake-step")
    assert "raises an alarm" in root.locator(".wst-sentence").inner_text()
    lesson.page.keyboard.press("End")
    root.screenshot(path=pictures / "brake.png")
    figures = lesson.show_cell("article").get_by_role("table", name="The article's run")
    assert figures.get_by_role("row").count() == 9
    answers = lesson.show_cell("answers-table").get_by_role("table")
    answers.screenshot(path=pictures / "answers.png")
    assert answers.get_by_role("row").count() == 6

    root = picture(lesson, "paging-step")
    lesson.page.keyboard.press("ArrowRight")
    assert "pages out 2,000 ready messages" in root.locator(".wst-sentence").inner_text()
    act(lesson, root, "^stall", 1)
    assert "18,000 in RAM2,000 paged out" in root.locator(".wst-picture").text_content()
    root.screenshot(path=pictures / "paging.png")

    root = picture(lesson, "mirror-desk")
    root.screenshot(path=pictures / "mirrors.png")
    act(lesson, root, "n4", 1)
    assert "It was n4" in run_cell(lesson, "check-blocker")
    assert lesson.show_cell("history").get_by_role("row").count() == 6
    lesson.set_theme("JupyterLab Dark")
    lesson.page.locator(".wst[data-theme=dark]").first.wait_for(state="attached")
    picture(lesson, "mirror-desk").screenshot(path=pictures / "mirrors-dark.png")
    lesson.assert_quiet()


def test_its_widest_tables_are_whole_in_a_narrow_page(lab_page):
    """At 700 pixels, the file browser closed, nobody has to scroll a table."""
    lesson = lab_page
    lesson.page.set_viewport_size({"width": 700, "height": 1000})
    lesson.open(LESSON)
    lesson.page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    lesson.run_cells("imports", "recall", "answers-table", "history")
    for cell in ("answers-table", "history"):
        lesson.show_cell(cell).get_by_role("table").wait_for()
        wider = lesson.page.evaluate(
            """() => [...document.querySelectorAll(".jp-OutputArea-output")]
            .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)"""
        )
        assert wider == []
