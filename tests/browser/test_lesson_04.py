"""Lesson 04 as a learner meets it: its key steps by keyboard alone, and by what stands in text."""

import re

import pytest

from .test_lesson_03 import answer, read_until, run_cell, said, stepper, value, where

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSON = "04_windows.ipynb"


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("lesson-04")


def counter(root, name: str, column: int) -> str:
    """A cell of the table of session windows: 0 is the sender's end, 1 the receiver's."""
    line = root.locator(".wbs-wide tr").filter(
        has=root.page.get_by_role("rowheader", name=name, exact=True)
    )
    return line.locator(".v").nth(column).inner_text().strip("≠ ")


def act(lesson, cell_id: str, name: str, **fields: str) -> None:
    """Act at a desk by keyboard: fill the fields named, then the button and Space."""
    desk = lesson.show_cell(cell_id)
    branches = desk.get_by_label("branch").locator("option")
    before = branches.count()
    button = desk.get_by_role("button", name=name, exact=True)
    button.wait_for()
    for label, text in fields.items():
        field = desk.get_by_label(re.compile(label.replace("_", " "))).locator("visible=true")
        field.first.fill(text)
    button.focus()
    lesson.page.keyboard.press("Space")
    lesson.page.wait_for_function(
        "([box, count]) => box.options.length > count",
        arg=[desk.get_by_label("branch").element_handle(), before],
    )


def to_the_end(lesson, cell_id: str):
    """The desk's stepper at its last step: the next act comes when all is at rest."""
    root = stepper(lesson, cell_id)
    lesson.page.keyboard.press("End")
    root.locator(".wbs-where", has_text=re.compile(r"^step (\d+) of \1 ")).wait_for()
    return root


def test_frames_formula_and_charts_by_keyboard(lab_page, pictures):
    """A message stops in its middle; the window is worked out; both saws are drawn."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_all()

    # One credit, a window of three: the table of windows is open, and tells why it stops.
    root = stepper(lesson, "stops-at-step")
    assert root.locator("details.wbs-more").get_attribute("open") is not None
    lesson.page.keyboard.press("End")
    root.locator(".wbs-where", has_text=re.compile(r"^step (\d+) of \1 ")).wait_for()
    assert counter(root, "receiver's incoming-window", 0) == "0"
    assert value(root, "sender", "link-credit").strip("≠") == "0"
    root.screenshot(path=pictures / "stopped.png")
    assert "Right" in answer(lesson, "stops-at", "frames", "3")
    act(lesson, "desk", "grant", link_credit="5")  # Compare waits until the desk was used
    assert "credit opens the window" in answer(lesson, "more-credit", "frames", "3")

    # The formula with its numbers, at the flow's arrival.
    root = stepper(lesson, "worked-out-step")
    read_until(root, "The broker hears the session's windows", 60)
    formula = root.locator(".wbs-formula").inner_text()
    assert "remote-incoming-window := next-incoming-id" in formula
    assert "as of step" not in formula
    root.screenshot(path=pictures / "formula.png")
    assert "the window is what the flow says" in answer(lesson, "worked-out", "frames", "8")

    # The charts are there, and the page without them has words in the legend.
    for cell_id in ("sawtooth", "sawtooth-small", "huge-see"):
        cell = lesson.show_cell(cell_id)
        cell.locator("canvas").first.wait_for()
        cell.screenshot(path=pictures / f"{cell_id}.png")
    assert "Right" in answer(lesson, "huge", "messages", "256")
    lesson.assert_quiet()


def test_desks_alarm_and_lanes_by_keyboard(lab_page, pictures):
    """Three desks are worked by keyboard until their checks agree."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_all()

    # The message in helpings.
    act(lesson, "desk", "grant", link_credit="1")
    for _ in range(2):
        to_the_end(lesson, "desk")
        act(lesson, "desk", "open window", frames="4")
    assert "Right" in run_cell(lesson, "check-helpings")

    # The session that the broker ends.
    root = stepper(lesson, "tolerated-step")
    assert "window-violation" in said(root)
    assert where(root) > 1
    root.screenshot(path=pictures / "ended.png")
    lesson.page.keyboard.press("ArrowLeft")  # Compare waits until the stepper was used
    assert "Right" in answer(lesson, "tolerated", "frames", "400")

    # The alarm's desk: empty the queue, publish something that waits.
    act(lesson, "alarm-desk", "alarm")
    to_the_end(lesson, "alarm-desk")
    act(lesson, "alarm-desk", "grant", link_credit="20")
    to_the_end(lesson, "alarm-desk")
    act(lesson, "alarm-desk", "acknowledge")
    to_the_end(lesson, "alarm-desk")
    act(lesson, "alarm-desk", "publish")
    assert "Right" in run_cell(lesson, "check-alarm")

    # The express lane.
    act(lesson, "lane-desk", "grant", link_credit="40")
    to_the_end(lesson, "lane-desk")
    act(lesson, "lane-desk", "begin session")
    assert "Right" in run_cell(lesson, "check-overtakes")
    lesson.show_cell("lanes").get_by_text("on a second session").first.wait_for()
    lesson.show_cell("layers").get_by_role("rowheader", name="slow writer").wait_for()
    lesson.assert_quiet()
