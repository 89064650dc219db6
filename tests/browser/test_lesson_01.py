"""Lesson 01 as a learner meets it: JupyterLab in Chromium, all cells, by button and by key."""

import re

import pytest

pytestmark = pytest.mark.browser

CREDIT = "link-credit"


def stepper(lesson, cell_id: str):
    """The stepper of a cell, on the screen."""
    root = lesson.show_cell(cell_id).locator(".wbs")
    root.wait_for()
    root.scroll_into_view_if_needed()
    return root


def value(root, side: str, counter: str = CREDIT) -> str:
    """What a ledger shows for a counter, as it stands in the page."""
    line = root.locator(f".wbs-ledger.{side} tr").filter(
        has=root.page.get_by_role("rowheader", name=counter, exact=True)
    )
    return line.locator(".v").first.inner_text()


def where(root) -> int:
    """The step that a stepper shows."""
    return int(re.match(r"step (\d+)", root.locator(".wbs-where").inner_text())[1])


def shot(lesson, root, folder, name: str) -> None:
    """Keep a picture, for whoever wants to see what the test saw."""
    root.screenshot(path=folder / f"{name}.png")


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("lesson-01")


def test_the_lesson_works_in_the_browser(lab_page, pictures):
    """Predict, step by button and by key, go back, grant by hand; no error is reported."""
    lesson = lab_page
    lesson.open("01_credit.ipynb")
    lesson.run_all()

    # Predict, by keyboard: there is nothing to compare before the step was looked at.
    asked = lesson.show_cell("grant-predict")
    field = asked.get_by_role("textbox", name="messages")
    field.wait_for()
    field.fill("10")
    field.press("Enter")
    asked.get_by_text("You say 10").wait_for()
    asked.get_by_role("button", name="Compare").click()
    asked.get_by_text("Look first: go to step").wait_for()
    shot(lesson, asked, pictures, "predict-look-first")

    # Step by button: the receiver's ledger first, the sender's when the flow arrives.
    root = stepper(lesson, "grant-step")
    assert (value(root, "sender"), value(root, "receiver")) == ("0", "0")
    begin = where(root)
    forward = root.get_by_role("button", name="one step on")
    seen = set()
    for _ in range(12):
        forward.click()
        seen.add((value(root, "sender"), value(root, "receiver")))
        if value(root, "sender") == "3":
            break
    assert ("0", "3") in seen
    assert value(root, "sender") == "3"
    assert "0 + 3 − 0 = 3" in root.locator(".wbs-formula").inner_text()
    shot(lesson, root, pictures, "granted")

    # Step by key, to the end and back again.
    root.focus()
    lesson.page.keyboard.press("ArrowRight")
    lesson.page.keyboard.press("End")
    assert (value(root, "sender"), value(root, "receiver")) == ("0", "0")
    assert value(root, "sender", "delivery-count") == "3"
    shot(lesson, root, pictures, "end")

    # Now a wrong answer is told as wrong, and then the right one as right.
    asked = lesson.show_cell("grant-predict")
    asked.get_by_role("button", name="Compare").click()
    asked.get_by_text("a flow opens the tap").wait_for()
    shot(lesson, asked, pictures, "predict-wrong")
    field = asked.get_by_role("textbox", name="messages")
    field.fill("3")
    field.press("Enter")
    asked.get_by_role("button", name="Compare").click()
    asked.get_by_text("✔ Right.").wait_for()
    root = stepper(lesson, "grant-step")
    root.focus()
    for _ in range(3):
        lesson.page.keyboard.press("ArrowLeft")
    while where(root) > begin:
        lesson.page.keyboard.press("ArrowLeft")
    assert (value(root, "sender"), value(root, "receiver")) == ("0", "0")
    assert value(root, "sender", "delivery-count") == "0"

    # Grant in the panel: a branch, whose first step is the act.
    desk = lesson.show_cell("desk")
    grant = desk.get_by_label(re.compile("link credit"))
    grant.wait_for()
    grant.fill("5")
    desk.get_by_role("button", name="grant", exact=True).click()
    desk.get_by_text(re.compile("Branch 1: grant")).wait_for()
    root = stepper(lesson, "desk")
    root.focus()
    lesson.page.keyboard.press("n")
    shot(lesson, desk, pictures, "desk")
    lesson.page.keyboard.press("End")
    assert value(root, "receiver", "delivery-count") == "5"

    # What is not legal is told in the panel, and nothing changes.
    desk = lesson.show_cell("desk")
    grant = desk.get_by_label(re.compile("link credit"))
    grant.fill("4294967296")
    desk.get_by_role("button", name="grant", exact=True).click()
    desk.get_by_text("legal: 0 to 4294967295").wait_for()
    assert value(root, "receiver", "delivery-count") == "5"

    # A real broker's frames in the same stepper.
    root = stepper(lesson, "rabbit-step")
    lesson.page.wait_for_timeout(100)
    before = where(root)
    root.focus()
    lesson.page.keyboard.press("ArrowRight")
    assert where(root) == before + 1
    shot(lesson, root, pictures, "rabbit")
    lesson.assert_quiet()


@pytest.mark.slow
def test_the_index_leads_to_the_lesson(lab_page, pictures):
    """The map says what is ready and what is planned, and its link opens the lesson."""
    index = lab_page
    index.open("00_index.ipynb")
    index.run_all()
    table = index.show_cell("map").get_by_role("table", name="Lessons")
    table.wait_for()
    shot(index, index.show_cell("map"), pictures, "map")
    assert table.get_by_role("row").count() == 13
    assert "planned" in table.get_by_role("row").last.inner_text()
    table.get_by_role("link", name="Grant credit by hand").click()
    index.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget?.context?.path?.endsWith('01_credit.ipynb')"
    )
    index.assert_quiet()
