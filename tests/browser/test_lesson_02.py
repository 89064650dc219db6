"""Lesson 02 as a learner meets it: both orders by hand, a belief contradicted, every schedule."""

import re

import pytest

from tests.patience import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSON = "02_race.ipynb"


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("lesson-02")


def value(root, side: str, counter: str = "link-credit") -> str:
    """What a ledger shows for a counter; the mark of a difference is left out."""
    line = root.locator(f".wbs-ledger.{side} tr").filter(
        has=root.page.get_by_role("rowheader", name=counter, exact=True)
    )
    return line.locator(".v").first.inner_text().replace("≠", "").strip()


def shows(root, sender: str, receiver: str) -> None:
    """Wait until the ledgers show these link-credits."""
    until(lambda: (value(root, "sender"), value(root, "receiver")) == (sender, receiver))


def move(desk, name: str) -> None:
    """Press a move, and wait until the desk has told what came of it."""
    told = desk.get_by_text(re.compile(rf"^Branch \d+: {name.replace(' ', '_')}\(\)"))
    desk.get_by_role("button", name=name, exact=True).click()
    told.wait_for()


def back(desk, times: int) -> None:
    """Undo some moves."""
    for _ in range(times):
        before = desk.locator(".wbs-where").inner_text()
        desk.get_by_role("button", name="undo").click()
        desk.page.wait_for_function(
            "([root, text]) => root.querySelector('.wbs-where').innerText !== text",
            arg=[desk.element_handle(), before],
        )


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

    # A wrong credit names its belief, and the shortest schedule against it opens below. Before
    # that the desk has to be used: Compare waits for it.
    desk = lesson.show_cell("race-desk")
    desk.locator(".wbs").wait_for()
    move(desk, "send flow")
    desk.get_by_role("button", name="undo").click()
    asked = lesson.show_cell("race")
    field = asked.get_by_role("textbox", name="link-credit")
    field.wait_for()
    field.fill("8")
    field.press("Enter")
    asked.get_by_text("You say 8").wait_for()
    asked.get_by_role("button", name="Compare").click()
    asked.get_by_text("“adds”").first.wait_for()
    asked.get_by_role("button", name="Show me").click()
    shown = asked.locator(".wbs")
    shown.wait_for()
    asked.get_by_text("send-flow, send-flow, flow-arrives, flow-arrives").wait_for()
    shown.focus()
    lesson.page.keyboard.press("End")
    shows(shown, "9", "6")
    asked.screenshot(path=pictures / "adds.png")
    field.fill("5")
    field.press("Enter")
    asked.get_by_role("button", name="Compare").click()
    asked.get_by_text("✔ Right.").wait_for()
    shown.wait_for(state="detached")

    # Both orders by hand; what is impossible says why.
    desk = lesson.show_cell("race-desk")
    root = desk.locator(".wbs")
    root.wait_for()
    move(desk, "send flow")
    move(desk, "send transfer")
    shows(root, "2", "6")
    move(desk, "flow arrives")
    shows(root, "5", "6")
    assert "20 + 6 − 21 = 5" in root.locator(".wbs-formula").inner_text()
    desk.get_by_role("button", name="flow arrives", exact=True).click()
    desk.get_by_text("no flow is in flight; legal now: ").wait_for()
    move(desk, "transfer arrives")
    shows(root, "5", "5")
    back(desk, 2)
    move(desk, "transfer arrives")
    shows(root, "2", "5")
    move(desk, "flow arrives")
    shows(root, "5", "5")
    desk.screenshot(path=pictures / "desk.png")

    # The check looks at the branches of that desk.
    run_again(lesson, "check-race")
    lesson.show_cell("check-race").get_by_text("✔ Right.").wait_for()

    # Every schedule: the nearest bad one by button, a neighbour by key, then another rule.
    lattice = lesson.show_cell("lattice")
    lattice.locator("canvas").first.wait_for()
    lattice.get_by_role("button", name="Nearest bad state").click()
    shown = lattice.locator(".wbs")
    shown.wait_for()
    shows(shown, "6", "6")
    assert value(shown, "sender", "delivery-count") == "1"
    lattice.get_by_role("button", name="state ▶").press("Enter")
    another = r"^\d+ moves \((?!send-flow, send-flow, flow-arrives, send-transfer, flow-arrives\))"
    lattice.get_by_text(re.compile(another)).wait_for()
    lattice.screenshot(path=pictures / "lattice.png")
    lattice.get_by_role("button", name="rule spec").click()
    lattice.get_by_text("145 states, none of them bad").first.wait_for()

    # A level by keyboard alone, to its par; and one that cannot be done.
    game = lesson.show_cell("scheduler")
    flow, arrives = "receiver sends its next flow", "oldest flow arrives"
    for made, name in enumerate((flow, flow, arrives), start=1):
        game.get_by_role("button", name=name).press("Enter")
        game.get_by_text(f"{made} move", exact=False).first.wait_for()
    game.get_by_role("button", name=arrives).press("Enter")
    game.get_by_text("That is the par").wait_for()
    game.get_by_label("level").select_option(label="3. One grant only")
    game.get_by_text("the receiver grants once").wait_for()
    game.get_by_role("button", name="Cannot be done").press("Enter")
    game.get_by_text("✔ Right, it cannot be done").wait_for()
    game.screenshot(path=pictures / "game.png")

    # One grant is green, two are red, and the schedule opens.
    lesson.show_cell("green").get_by_text("✔ With 1 grant nothing goes wrong").wait_for()
    red = lesson.show_cell("red")
    red.get_by_text("✘ It takes 5 moves to break it").wait_for()
    red.get_by_role("button", name="Open in stepper").click()
    shown = red.locator(".wbs")
    shown.wait_for()
    assert "but the ledger says 6" in shown.locator(".wbs-formula").inner_text()

    # A sender of the learner's own.
    write(
        lesson,
        "half",
        "def on_flow(state, frame):\n"
        "    in_flight = serial.diff(state.delivery_count, frame.delivery_count)\n"
        "    state.link_credit = frame.link_credit - in_flight\n\n"
        "check.sender(on_flow, messages=10, grants=[3, 6], starts=[0, 4294967294])",
    )
    run_again(lesson, "half")
    lesson.show_cell("half").get_by_text("✔ Right.").wait_for()

    # What was answered is in the log.
    run_again(lesson, "progress")
    log = lesson.show_cell("progress")
    log.get_by_text(re.compile("02/crossing")).first.wait_for()
    log.get_by_text(re.compile("02/sender")).first.wait_for()
    lesson.assert_quiet()
