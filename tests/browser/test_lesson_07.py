"""Lesson 07 as a learner meets it: replicas on the stage, by keyboard and by mouse."""

import re

import pytest

from .test_lesson_01 import picture, said
from .test_lesson_03 import run_cell

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSON = "07_quorum.ipynb"


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("lesson-07")


def chosen(lesson, cell_id: str, words: str) -> str:
    """Commit a choice of a prediction and compare; gives what is told."""
    cell = lesson.show_cell(cell_id)
    cell.get_by_text(words, exact=True).locator("visible=true").first.click()
    cell.get_by_role("button", name="Commit").click()
    compare = cell.get_by_role("button", name="Compare")
    compare.click()
    line = cell.get_by_role("status").filter(has_text=re.compile("Right|Not quite")).last
    line.wait_for()
    return line.inner_text()


def shown(root) -> str:
    """The sentence of the step that is shown."""
    return root.locator(".wst-sentence").inner_text()


def test_the_third_fsync_is_told_and_a_node_and_a_line_can_be_clicked(lab_page, pictures):
    """Interesting steps lead to the majority's fsync; crash and cut make branches."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_cells("imports", "trigger", "one-step")
    root = picture(lesson, "one-step")
    assert "n1 leader" in said(root)
    seen = []
    while not seen or seen[-1] != shown(root):
        seen.append(shown(root))
        lesson.page.keyboard.press("n")
    (told,) = [text for text in seen if "a majority." in text]
    assert "Now 3 of 5 disks have entry 2" in told
    assert "The leader n1 knows it when n5's reply arrives" in told
    lesson.page.keyboard.press("End")
    assert "Confirmed: 1 message" in said(root)
    root.screenshot(path=pictures / "one.png")

    lesson.page.keyboard.press("Home")
    for _ in range(6):
        lesson.page.keyboard.press("ArrowRight")
    root.get_by_role("button", name=re.compile("^n3, follower")).click()
    root.get_by_text("Branch 1").first.wait_for()
    root.focus()
    lesson.page.keyboard.press("End")
    assert "n3 down" in said(root)
    root.locator("[data-act='cut:n1:n2']").first.press("Enter")
    root.get_by_text("Branch 2").first.wait_for()
    root.screenshot(path=pictures / "branches.png")
    lesson.assert_quiet()


def test_predictions_tables_and_the_slider(lab_page, pictures):
    """Choices by keyboard or mouse, a table beside, a slider that works its points out anew."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_all()
    told = chosen(lesson, "slow-disks", "as soon as before")
    assert "Right" in told
    picture(lesson, "crash-step")
    lesson.page.keyboard.press("End")
    told = chosen(lesson, "who-resends", "nobody: they are lost")
    assert "what is pending is lost" in told
    desk = lesson.show_cell("sync-desk")
    before = desk.get_by_role("status").inner_text()
    desk.get_by_role("slider").focus()
    lesson.page.keyboard.press("ArrowRight")
    # A single message in flight waits for one fsync, which now takes a millisecond more.
    desk.get_by_role("cell", name="6.0", exact=True).wait_for()
    assert desk.get_by_role("status").inner_text() != before
    desk.screenshot(path=pictures / "slider.png")
    real = lesson.show_cell("real")
    senders = real.get_by_role("table", name="Two senders, model and article")
    assert senders.get_by_role("row").count() == 4
    for kind in ("classic", "quorum", "both"):
        line = senders.get_by_role("row").filter(has_text=kind).inner_text()
        assert re.search(r"[+-]\d+\.\d %", line)
    assert real.get_by_role("table", name="Model and measurement").get_by_role("row").count() == 7
    lesson.wait_still(real)
    real.screenshot(path=pictures / "real.png")
    lesson.assert_quiet()


def test_the_desk_by_keyboard_and_in_the_dark(lab_page, pictures):
    """Publish by key: a branch in which all are confirmed; the check says what is missing."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_cells("imports", "desk")
    root = picture(lesson, "desk")
    lesson.page.keyboard.press("End")
    root.locator("[data-act=publish]").first.press("Enter")
    root.get_by_text("Branch 1").first.wait_for()
    root.focus()
    lesson.page.keyboard.press("End")
    assert "Confirmed: 4 messages" in said(root)
    assert "a majority always reached each other" in run_cell(lesson, "check-recovered")
    lesson.set_theme("JupyterLab Dark")
    lesson.page.locator(".wst[data-theme=dark]").first.wait_for(state="attached")
    picture(lesson, "desk").screenshot(path=pictures / "dark.png")
    lesson.assert_quiet()
