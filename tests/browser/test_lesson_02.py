"""Lesson 02 as a learner meets it: both orders by hand, a belief contradicted, every schedule."""

import re

import pytest

from tests.browser.test_lesson_01 import picture, said
from tests.patience import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSON = "02_race.ipynb"
WHOLE = """list => {  // whether its widest line has room
    const one = list.cloneNode(true);
    one.style.cssText = "flex: none; width: max-content";
    list.after(one);
    const needed = one.clientWidth;
    one.remove();
    return list.clientWidth >= needed;
}"""


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("lesson-02")


def shows(root, sender: str, receiver: str) -> None:
    """Wait until the picture says these link-credits of sender and receiver."""
    credit = re.compile(r"(Sender|Receiver): delivery-count \d+, link-credit (\d+)")
    until(lambda: credit.findall(said(root)) == [("Sender", sender), ("Receiver", receiver)])


def act(root, name: str) -> None:
    """Press an action, and wait until the picture stands at the end of the branch that it makes."""
    before = root.locator(".wst-strip").inner_text()
    root.get_by_role("button", name=re.compile(f"^{name}")).first.click()
    until(lambda: root.locator(".wst-strip").inner_text() != before)
    root.focus()
    root.page.keyboard.press("End")


def select(root, option: str) -> None:
    """Choose a rule beside the rule."""
    root.get_by_role("combobox", name="your rule").select_option(label=option)


def run_again(lesson, cell_id: str) -> None:
    """Run one cell, and wait for the kernel."""
    lesson.show_cell(cell_id)
    lesson.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell')")
    lesson.wait_idle()
    assert lesson.failed_cells() == {}


def write(lesson, cell_id: str, source: str) -> None:
    """Put other code into a cell."""
    lesson.show_cell(cell_id)
    lesson.page.evaluate(
        "(source) => window.jupyterapp.shell.currentWidget.content.activeCell.model"
        ".sharedModel.setSource(source)",
        source,
    )


def test_the_race_in_the_browser(lab_page, pictures):
    """Predict wrongly and be shown why, cross the frames by hand in both orders, be checked."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.run_all()

    # What is asked, and what is done, stand on one screen each; Compare waits for an action.
    room = lesson.page.locator(".jp-WindowedPanel-outer").first.bounding_box()["height"]
    root = picture(lesson, "race-desk")
    assert root.bounding_box()["height"] < room
    act(root, "send next flow")
    asked = lesson.show_cell("race")
    assert asked.bounding_box()["height"] < room
    field = asked.get_by_role("textbox", name="link-credit")
    field.wait_for()
    field.fill("8")
    field.press("Enter")
    asked.get_by_text("You say: 8").wait_for()
    asked.get_by_role("button", name="Compare").click()
    asked.get_by_text("“adds”").first.wait_for()

    # A misconception beside the rule, on the same numbers: play stops where they part.
    asked.get_by_role("button", name="Show me").click()
    shown = asked.locator(".wst")
    shown.wait_for()
    assert shown.bounding_box()["height"] < room
    shown.get_by_role("button", name="play (space)").click()
    shown.get_by_text("Here they part: your rule makes link-credit 8").first.wait_for()
    shows(shown, "5", "6")
    asked.screenshot(path=pictures / "adds.png")
    field.fill("5")
    field.press("Enter")
    asked.get_by_role("button", name="Compare").click()
    asked.get_by_text("✔ Right.").wait_for()
    shown.wait_for(state="detached")

    # Both orders by hand; what is impossible says why.
    root = picture(lesson, "race-desk")
    act(root, "send a message")
    shows(root, "2", "6")
    act(root, "flow: delivery-count 20")
    shows(root, "5", "6")
    assert "20 + 6 − 21 = 5" in root.locator(".wst-formula").inner_text()
    root.get_by_role("button", name="send next flow").first.click(force=True)
    root.get_by_text("the receiver has no flow left: it has sent 1 flow").wait_for()
    act(root, "transfer")
    shows(root, "5", "5")
    root.get_by_role("button", name="branch 2: send transfer").click()
    root.get_by_text("Action: send transfer").wait_for()
    root.focus()
    lesson.page.keyboard.press("End")
    act(root, "transfer")
    shows(root, "2", "5")
    act(root, "flow: delivery-count 20")
    shows(root, "5", "5")

    # In a branch, too, another rule stands beside the right one.
    root.get_by_role("button", name="Compare rules").click()
    select(root, "the sender's credit becomes the number in the flow, whatever it sent meanwhile")
    root.get_by_text("Here they part: your rule makes link-credit 6").first.wait_for()
    root.screenshot(path=pictures / "desk.png")

    # The check looks at the branches of that desk.
    run_again(lesson, "check-race")
    lesson.show_cell("check-race").get_by_text("✔ Right.").wait_for()

    # Every schedule: what bad is, the nearest bad one by button, a neighbour by key, another rule.
    graph = lesson.show_cell("lattice")
    graph.locator("canvas").first.wait_for()
    graph.get_by_text("Bad is a state in which").wait_for()
    graph.get_by_role("button", name="Nearest bad state").click()
    shown = graph.locator(".wst")
    shown.wait_for()
    shows(shown, "6", "6")
    assert "Sender: delivery-count 1" in said(shown)
    graph.get_by_role("button", name="state ▶").press("Enter")
    another = r"^\d+ moves \((?!send-flow, send-flow, flow-arrives, send-transfer, flow-arrives\))"
    graph.get_by_text(re.compile(another)).wait_for()
    graph.screenshot(path=pictures / "lattice.png")
    graph.get_by_role("button", name="rule spec").click()
    graph.get_by_text("145 states, none of them bad").first.wait_for()

    # A level on the stage, by its shortest schedule; and one that cannot be done.
    game = lesson.show_cell("scheduler")
    root = picture(lesson, "scheduler")
    for name in (*["send next flow"] * 2, *["flow: delivery-count"] * 2):
        act(root, name)
    game.get_by_text("That is the shortest possible").wait_for()
    game.get_by_role("button", name="All schedules").press("Enter")
    game.get_by_text("197 states, 136 of them bad").first.wait_for()
    assert game.get_by_role("combobox", name="state").evaluate(WHOLE)
    game.locator("select").first.select_option(label="3. One grant only")
    game.get_by_text("the receiver grants once").wait_for()
    game.get_by_role("button", name="Cannot be done").press("Enter")
    game.get_by_text("✔ Right, it cannot be done").wait_for()
    assert game.locator("select").first.evaluate(WHOLE)
    game.screenshot(path=pictures / "game.png")

    # One grant is green, two are red, and the schedule opens.
    green = lesson.show_cell("green")
    green.get_by_text("✔ With 1 grant nothing goes wrong").wait_for()
    green.get_by_role("button", name="What does this prove?").click()
    green.get_by_text("✘ It takes 5 moves to break it").wait_for()
    green.get_by_role("button", name="Open on the stage").click()
    shown = green.locator(".wst")
    shown.wait_for()
    assert "but its counter says 6" in shown.locator(".wst-formula").inner_text()

    # A sender of the learner's own.
    write(
        lesson,
        "blank",
        "def on_flow(state, frame):\n"
        "    in_flight = serial.diff(state.delivery_count, frame.delivery_count)\n"
        "    state.link_credit = frame.link_credit - in_flight\n\n"
        "check.sender(on_flow, messages=10, grants=[3, 6], starts=[0, 4294967294])",
    )
    run_again(lesson, "blank")
    lesson.show_cell("blank").get_by_text("✔ Right.").wait_for()

    # What was answered is in the log.
    run_again(lesson, "progress")
    log = lesson.show_cell("progress")
    log.get_by_text(re.compile("02/crossing")).first.wait_for()
    log.get_by_text(re.compile("02/sender")).first.wait_for()
    lesson.assert_quiet()
