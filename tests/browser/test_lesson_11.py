"""Lesson 11 as a learner meets it: a real client on the wire, by keyboard, read as text."""

import re

import pytest

from tests.browser.test_lesson_01 import picture, where
from tests.browser.test_lesson_01 import said as told
from tests.patience import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
pytest.importorskip("proton", reason="needs python-qpid-proton")

LESSON = "11_own_client.ipynb"


@pytest.fixture
def pictures(tmp_path_factory):
    """A folder for pictures of this run."""
    return tmp_path_factory.mktemp("lesson-11")


def run_upto(lesson, last: str) -> None:
    """Run the cells one after the other, as far as this one, as a learner would."""
    lesson.page.evaluate(
        """async (last) => {
            const app = window.jupyterapp, content = app.shell.currentWidget.content;
            const end = content.widgets.findIndex((cell) => cell.model.id === last);
            for (let at = content.activeCellIndex; at <= end; at += 1) {
                content.activeCellIndex = at;
                if (content.widgets[at].model.type === 'code') {
                    await app.commands.execute('notebook:run-cell');
                }
            }
        }""",
        last,
    )
    lesson.wait_idle()
    assert lesson.failed_cells() == {}


def commit(lesson, cell_id: str, unit: str, text: str) -> None:
    """Put an answer down, by keyboard."""
    asked = lesson.show_cell(cell_id)
    field = asked.get_by_role("textbox", name=unit)
    field.wait_for()
    field.fill(text)
    field.press("Enter")
    asked.get_by_text(f"You say: {text}").wait_for()


def compare(lesson, cell_id: str) -> str:
    """Compare, by keyboard; gives what is told."""
    asked = lesson.show_cell(cell_id)
    line = asked.get_by_role("status").last
    before = line.inner_text()
    button = asked.get_by_role("button", name="Compare")
    button.focus()
    lesson.page.keyboard.press("Space")
    told = lambda: line.inner_text()  # noqa: E731
    until(lambda: told() != before and re.search("Right|Not quite|yet", told()))
    return told()


def wire(lesson):
    """The frozen wire, with the keyboard's focus."""
    root = lesson.show_cell("wire").locator(".wst")
    root.wait_for()
    root.focus()
    return root


def said(root) -> str:
    """The line that is read aloud."""
    return root.get_by_role("status").inner_text()


def press(root, key: str) -> str:
    """Press a key and wait until the line tells what came of it."""
    before = said(root)
    root.page.keyboard.press(key)
    root.page.wait_for_function(
        "([line, before]) => line.innerText !== before",
        arg=[root.get_by_role("status").element_handle(), before],
    )
    return said(root)


def forward_until(root, words: str, key: str = "f", most: int = 40) -> str:
    """Forward until the line says that such a frame is next."""
    for _ in range(most):
        line = said(root)
        if f"Next: {words}" in line:
            return line
        if "Next:" not in line:
            root.get_by_role("status").filter(has_text="Next:").wait_for()
            continue
        press(root, key)
    raise AssertionError(f"{words!r} was never next; last: {said(root)}")


def first_of(root, lane: int) -> str:
    """The first frame that waits at a gate, in words: 0 at the client's, 1 at the broker's."""
    root.page.wait_for_function(FIRST, arg=[root.element_handle(), lane])
    return root.page.evaluate(FIRST, [root.element_handle(), lane])


FIRST = """([root, lane]) => {
  const lanes = [...root.querySelectorAll(".wst-picture .tube")].map((tube) => tube.getBoundingClientRect());
  const there = (node) => {
    const box = node.getBoundingClientRect(), y = box.top + box.height / 2;
    return Math.abs(y - (lanes[lane].top + lanes[lane].height / 2)) < 12;
  };
  const held = [...root.querySelectorAll(".wst-picture [data-frame]")].filter(there);
  held.sort((a, b) => Number(a.dataset.frame) - Number(b.dataset.frame));
  return held[0]?.getAttribute("aria-label");
}"""  # noqa: E501


def test_a_client_on_the_frozen_wire_by_keyboard(lab_page, pictures):
    """Handshake, credit and the race with a real client; what matters is read as text."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.page.set_viewport_size({"width": 1280, "height": 1000})
    lesson.show_cell("title")
    run_upto(lesson, "wire")
    root = wire(lesson)
    assert "Nobody is connected yet" in root.inner_text()
    lesson.show_cell("first-note")
    run_upto(lesson, "before-attach")
    assert "runs in the background" in lesson.show_cell("client").inner_text()

    # Nothing has been compared that has not happened.
    commit(lesson, "before-attach", "frames", "1")
    assert "yet" in compare(lesson, "before-attach")

    root = wire(lesson)
    assert "Next: protocol-header" in said(root)
    root.screenshot(path=pictures / "header.png")
    forward_until(root, "attach")
    root.page.keyboard.press("2")
    assert "/queues/q" in root.get_by_role("region", name="Bytes").inner_text()
    root.screenshot(path=pictures / "attach.png")
    root.page.keyboard.press("2")
    told = compare(lesson, "before-attach")
    assert "queue is named at once" in told

    # Credit: what the client grants, what comes of it, and what it says next.
    lesson.show_cell("credit-note")
    run_upto(lesson, "next-credit")
    root = wire(lesson)
    forward_until(root, "attach")
    press(root, "c")
    carried = first_of(root, 0)
    granted = re.search(r"link-credit (\d+)", carried)[1]
    commit(lesson, "first-credit", "link-credit", granted)
    assert "Right" in compare(lesson, "first-credit")
    root = wire(lesson)
    press(root, "c")
    commit(lesson, "brought", "transfers", granted)
    assert "Right" in compare(lesson, "brought")
    root = wire(lesson)
    while "attach" not in first_of(root, 1):
        press(root, "b")
    press(root, "b")
    assert "flow" in first_of(root, 0)
    commit(lesson, "next-credit", "link-credit", granted)
    assert "asks for what it was told" in compare(lesson, "next-credit")
    root = wire(lesson)
    root.screenshot(path=pictures / "crossing.png")
    press(root, "c")

    # What was said so far can be gone through, while frames wait.
    root.page.keyboard.press("ArrowLeft")
    root.page.keyboard.press("3")
    log = root.get_by_role("region", name="Log")
    now = log.locator("[aria-current=step]").get_attribute("data-arg")
    earlier = log.locator(".wst-log button").first.get_attribute("data-arg")
    assert int(earlier) < int(now)
    log.locator(".wst-log button").first.click()
    log.locator(f"[aria-current=step][data-arg='{earlier}']").wait_for()
    root.page.keyboard.press("3")
    root.page.keyboard.press("End")

    # Free run: the job ends, and the check finds the race.
    root = wire(lesson)
    press(root, "g")
    lesson.show_cell("stop-step")
    run_upto(lesson, "again")
    assert "client has ended" in lesson.show_cell("again").inner_text()
    lesson.show_cell("check-crossed")
    run_upto(lesson, "check-crossed")
    assert "by your own client" in lesson.show_cell("check-crossed").inner_text()
    lesson.assert_quiet()


def test_all_cells_run_and_a_breakpoint_stops_a_client(lab_page, pictures):
    """Run all is harmless; the breakpoint is typed, met, removed; the traces open."""
    lesson = lab_page
    lesson.open(LESSON)
    lesson.page.set_viewport_size({"width": 1280, "height": 1000})
    lesson.run_all()
    root = wire(lesson)
    root.page.keyboard.press("a")
    root.get_by_role("button", name=re.compile("^do: show c")).last.click()
    root.get_by_label(re.compile("^stop at")).fill("link_credit <= 1")
    root.get_by_label(re.compile("^stop at")).press("Enter")
    root.get_by_text("It will stop at: link_credit <= 1").wait_for()
    root.focus()
    lesson.page.keyboard.press("g")
    root.get_by_role("status").filter(has_text="Stopped: link_credit <= 1").wait_for()
    root.screenshot(path=pictures / "stopped.png")
    asked = lesson.show_cell("stopped-at")
    asked.get_by_role("radio", name="transfer", exact=True).check()
    asked.get_by_role("button", name="Commit").click()
    asked.get_by_text("You say: transfer").wait_for()
    assert "Right" in compare(lesson, "stopped-at")
    root = wire(lesson)
    root.get_by_role("button", name=re.compile("^do: remove all stops")).click()
    root.get_by_text("No stops.").wait_for()
    root.focus()
    lesson.page.keyboard.press("g")
    root.get_by_role("status").filter(has_text="is over").wait_for()

    # The proxy's trace: one row for a frame, observed on the wire.
    commit(lesson, "proxy", "rows", "2")
    assert "both ends report" in compare(lesson, "proxy")
    root = picture(lesson, "proxy-trace")
    lesson.page.keyboard.press("End")
    # The client takes ten and closes; how many more the broker has sent by then, on the credit of
    # four, is a matter of who is quicker.
    sent = re.search(r"Sender: delivery-count (\d+), link-credit (\d+)", told(root))
    assert 10 <= int(sent[1]) <= 13
    assert int(sent[1]) + int(sent[2]) in (13, 14)
    assert where(root) > 20
    root.screenshot(path=pictures / "proxy.png")

    # The broker's trace, run again now that clients have been there: their counters are inferred.
    lesson.show_cell("trace")
    run_upto(lesson, "trace")
    root = picture(lesson, "trace")
    root.get_by_text("counters inferred").first.wait_for()
    lesson.page.keyboard.press("End")
    assert "are inferred from its frames" in told(root)
    root.screenshot(path=pictures / "trace.png")
    lesson.assert_quiet()
