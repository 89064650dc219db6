"""Lesson 01 as a learner meets it: JupyterLab in Chromium, all cells, by button and by key."""

import re

import pytest

pytestmark = pytest.mark.browser


def picture(lesson, cell_id: str):
    """The stage of a cell, on the screen and with the keyboard's focus."""
    root = lesson.show_cell(cell_id).locator(".wst")
    root.wait_for()
    root.scroll_into_view_if_needed()
    lesson.wait_still(root)
    root.focus()
    return root


def limits(root) -> tuple[str, str]:
    """What the line of numbers says of the sender and of the receiver: their limits."""
    found = root.locator("svg text").filter(has_text=re.compile(r"limit \d+$")).all_text_contents()
    sender, receiver = (re.search(r"\d+$", text)[0] for text in found)
    return sender, receiver


def said(root) -> str:
    """All of the step in words, for those who do not see the picture."""
    return root.locator(".wst-words").inner_text()


def where(root) -> int:
    """The step that is shown, or the row of a slice."""
    return int(re.search(r"(?:step|row) (\d+)", root.locator(".wst-now").inner_text())[1])


def send(root, credit: int) -> None:
    """Send an amount of credit, by key: from the list of all acts."""
    root.focus()
    root.page.keyboard.press("a")
    field = root.get_by_role("spinbutton", name="link credit")
    field.fill(str(credit))
    field.press("Enter")


def shot(lesson, root, folder, name: str) -> None:
    """Keep a picture, for whoever wants to see what the test saw."""
    root.screenshot(path=folder / f"{name}.png")


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("lesson-01")


@pytest.mark.slow
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
    asked.get_by_text("You say: 10").wait_for()
    asked.get_by_role("button", name="Compare").click()
    asked.get_by_text("Look first: go to step").wait_for()
    shot(lesson, asked, pictures, "predict-look-first")

    # Step by button: the receiver's limit first, the sender's when the flow arrives.
    root = picture(lesson, "grant-step")
    assert limits(root) == ("0", "0")
    begin = where(root)
    forward = root.get_by_role("button", name="one step on")
    seen = []
    while where(root) < begin + 3:
        forward.click()
        seen.append(limits(root))
    assert seen[-2:] == [("0", "3"), ("3", "3")]
    assert "0 + 3 − 0 = 3" in root.locator(".wst-formula").inner_text()
    shot(lesson, root, pictures, "granted")

    # Step by key, to the end and back again.
    root.focus()
    lesson.page.keyboard.press("End")
    assert "Sender: delivery-count 3, link-credit 0" in said(root)
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
    root = picture(lesson, "grant-step")
    lesson.page.keyboard.press("Home")
    assert (where(root), limits(root)) == (begin, ("0", "0"))

    # Grant on the picture: a branch, which plays at once.
    root = picture(lesson, "desk")
    knob = root.get_by_role("slider", name="link credit")
    knob.focus()
    for _ in range(5):
        knob.press("ArrowUp")
    knob.press("Enter")
    root.get_by_text("Branch 1").first.wait_for()
    root.focus()
    lesson.page.keyboard.press("End")
    assert "Receiver: delivery-count 5, link-credit 0" in said(root)
    shot(lesson, root, pictures, "desk")

    # What is not legal is told in the picture, and nothing changes.
    send(root, 2**32)
    told = root.get_by_role("alert")
    told.wait_for()
    assert "legal: 0 to 4294967295" in told.inner_text()
    assert root.get_by_text("Branch 2").count() == 0

    # A real broker's frames in the same picture.
    root = picture(lesson, "rabbit-step")
    before = where(root)
    lesson.page.keyboard.press("ArrowRight")
    assert where(root) == before + 1
    shot(lesson, root, pictures, "rabbit")
    lesson.assert_quiet()


def test_a_newcomer_sees_a_frame_glide_by_the_first_press(lab_page):
    """The index's picture opens with a flow about to leave: play, and it arrives."""
    index = lab_page
    index.open("00_index.ipynb")
    index.run_all()
    root = picture(index, "first-steps")
    assert limits(root) == ("0", "2")
    flow = root.locator("[data-frame]").filter(has_text="0 + 2").first
    # Both are asked for before it moves: on a busy machine it may have arrived by the next look.
    placed, node = flow.bounding_box()["x"], flow.element_handle()
    root.get_by_role("button", name="play (space)").click()
    index.page.wait_for_function(
        "([node, x]) => !node.isConnected || node.getBoundingClientRect().x < x - 40",
        arg=[node, placed],
    )
    root.get_by_role("button", name="play (space)").wait_for()
    assert "Receiver: delivery-count 2, link-credit 0" in said(root)
    index.assert_quiet()


@pytest.mark.slow
def test_the_index_leads_to_the_lesson(lab_page, pictures):
    """The map says that every lesson is ready, and its link opens the lesson."""
    index = lab_page
    index.open("00_index.ipynb")
    index.run_all()
    table = index.show_cell("map").get_by_role("table", name="Lessons")
    table.wait_for()
    shot(index, index.show_cell("map"), pictures, "map")
    assert table.get_by_role("row").count() == 13
    assert "ready" in table.get_by_role("row").last.inner_text()
    table.get_by_role("link", name="Grant credit by hand").click()
    index.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget?.context?.path?.endsWith('01_credit.ipynb')"
    )
    index.assert_quiet()
