"""Lesson 07 as a learner meets it: figure, lamps and stepper have one cursor, by keyboard."""

import re

import pytest

from .test_lesson_03 import act, run_cell, step_on, stepper, where

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSON = "07_quorum.ipynb"


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("lesson-07")


def lamps(lesson, cell_id: str):
    """The lamps of a cell."""
    return lesson.show_cell(cell_id).locator(".wbl").first


def cells(root, number: int) -> list[str]:
    """The lamps of one message as they stand in the page."""
    row = root.get_by_role("row").filter(
        has=root.page.get_by_role("rowheader", name=str(number), exact=True)
    )
    return row.locator("td").all_inner_texts()


def chosen(lesson, cell_id: str, words: str) -> str:
    """Commit a choice of a prediction and compare; gives what is told."""
    cell = lesson.show_cell(cell_id)
    cell.get_by_text(words, exact=True).first.click()
    cell.get_by_role("button", name="Commit").click()
    compare = cell.get_by_role("button", name="Compare")
    compare.click()
    line = cell.get_by_role("status").filter(has_text=re.compile("Right|Not quite")).last
    line.wait_for()
    return line.inner_text()


def test_figure_lamps_and_stepper_have_one_cursor(lab_page, pictures):
    """A message goes through its lamps; the figure's title names the stepper's step."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_all()
    assert lesson.failed_cells() == {}

    root = stepper(lesson, "one-step")
    lights = lamps(lesson, "one-step")
    assert cells(lights, 1) == []
    seen = []
    for _ in range(34):
        step_on(root)
        now = cells(lights, 1)
        if now and now not in seen:
            seen.append(now)
    assert seen[0][0] == "● n1"
    assert any(now[1] == "◐ n3 n1" for now in seen)
    assert any(now[1].startswith("● n3 n1 n5") for now in seen)
    assert seen[-1][5] == "●"
    lesson.page.keyboard.press("End")
    lights.get_by_text("1 of 1 messages are confirmed").wait_for()
    step = where(root)
    lesson.show_cell("one-step").screenshot(path=pictures / "one.png")
    lesson.show_cell("one-step").get_by_text("The figure in words").click()
    said = lesson.show_cell("one-step").locator("pre", has_text=f"Step {step} of").first
    said.wait_for()
    assert "★ n1 leader" in said.inner_text()
    lesson.assert_quiet()


def test_predictions_tables_and_the_slider(lab_page, pictures):
    """Choices by keyboard or mouse, a table beside, a slider that works its points out anew."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_all()
    told = chosen(lesson, "slow-leader", "as soon as before")
    assert "Right" in told
    stepper(lesson, "crash-step")
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
    """Crash the leader: lamps and figure show the branch; the check says what is missing."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_all()
    stepper(lesson, "desk")
    desk = lesson.show_cell("desk")
    desk.get_by_label("node").first.wait_for()
    act(lesson, "desk", "publish")
    lamps(lesson, "desk").get_by_text("4 of 4 messages are confirmed").wait_for()
    assert "a majority always reached each other" in run_cell(lesson, "check-recovered")
    lesson.page.evaluate(
        "() => window.jupyterapp.commands.execute('apputils:change-theme',"
        " {theme: 'JupyterLab Dark'})"
    )
    lesson.page.locator(".wbl[data-theme=dark]").first.wait_for(state="attached")
    lesson.show_cell("desk").screenshot(path=pictures / "dark.png")
    assert where(stepper(lesson, "desk")) > 0
    lesson.assert_quiet()
