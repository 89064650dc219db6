"""Lesson 05 as a learner meets it: the meter follows the stepper, by keyboard and as text."""

import re

import pytest

from .test_lesson_03 import act, answer, read_until, run_cell, step_on, stepper, where

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSON = "05_publishers.ipynb"


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("lesson-05")


def meter(lesson, cell_id: str):
    """The meter of a cell."""
    return lesson.show_cell(cell_id).locator(".wbm").first


def held(root) -> str:
    """What the meter says, as a screen reader hears it."""
    return root.locator(".wbm-said").inner_text()


def line(root, name: str) -> list[str]:
    """Value and state of one of the meter's lines."""
    row = root.locator("tr").filter(has=root.page.get_by_role("rowheader", name=name, exact=True))
    return [row.locator(".v").inner_text(), row.locator(".s").inner_text()]


def test_the_meter_follows_the_stepper_and_names_one_brake(lab_page, pictures):
    """Credit falls as the steps pass; at the end of a stall `unconfirmed` binds."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_all()
    assert lesson.failed_cells() == {}

    root = stepper(lesson, "stall-step")
    read_until(root, "sends message", 40)
    gauge = meter(lesson, "stall-step")
    before = line(gauge, "link credit")[0]
    for _ in range(6):
        step_on(root)
    assert line(gauge, "link credit")[0] != before
    lesson.page.keyboard.press("End")
    gauge.locator(".wbm-said", has_text="Held by unconfirmed").wait_for()
    assert "Also on: link-credit" in held(gauge)
    assert line(gauge, "waiting for a confirm")[1] == "▶ binding"
    assert line(gauge, "link credit")[1] == "• on too"
    assert line(gauge, "TCP") == ["takes octets", ""]
    lesson.show_cell("stall-step").screenshot(path=pictures / "stalled.png")

    # Home and back again: the meter is where the stepper is, and no kernel was asked.
    lesson.page.keyboard.press("Home")
    gauge.locator(".wbm-said", has_text="not been heard of").wait_for()
    assert "Right" in answer(lesson, "regrant", "link-credit", "85")
    assert "Right" in answer(lesson, "stall-takes", "messages", "255")
    assert "one more confirmed" in answer(lesson, "one-confirmed", "messages", "256")
    lesson.assert_quiet()


def test_the_desk_by_keyboard(lab_page, pictures):
    """Stall, publish and look: the meter shows the branch, its select the other link."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_all()
    gauge = meter(lesson, "desk")
    stepper(lesson, "desk")
    desk = lesson.show_cell("desk")
    act(lesson, "desk", "stall")
    field = desk.get_by_label(re.compile("^count")).first
    field.fill("400")
    act(lesson, "desk", "publish")
    gauge.locator(".wbm-said", has_text="Held by unconfirmed").wait_for()
    choose = gauge.get_by_label("link of the meter")
    choose.focus()
    lesson.page.keyboard.press("ArrowDown")
    gauge.locator(".wbm-said", has_text="Held by no-message").wait_for()
    desk.screenshot(path=pictures / "desk.png")
    assert "Not yet in this branch" in run_cell(lesson, "check-collected")

    # Dark: the meter follows JupyterLab's theme, as the stepper does.
    lesson.set_theme("JupyterLab Dark")
    lesson.page.locator(".wbm[data-theme=dark]").first.wait_for(state="attached")
    lesson.show_cell("desk").screenshot(path=pictures / "dark.png")
    assert where(stepper(lesson, "desk")) > 0
    lesson.assert_quiet()
