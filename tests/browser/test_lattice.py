"""State graph and own sender in a real JupyterLab: mouse and keyboard, at 1280 pixels."""

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CELLS = {
    "imports": "from workbench import lattices, order_lines, try_sender"
    "\nfrom workbench.exercises.order_lines import on_flow_lines",
    "lattice": "lattices(messages=10, grants=[3, 6])",
    "sender": "def on_flow(state, frame):\n    state.link_credit = frame.link_credit\n\n"
    "try_sender(on_flow, messages=10, grants=[3])",
    "lines": "order_lines(**on_flow_lines())",
}


@pytest.fixture
def page(lab_page, lab_root):
    """A notebook with one view a cell, all run, in a window of a small laptop."""
    notebook = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    )
    for name, source in CELLS.items():
        cell = nbformat.v4.new_code_cell(source)
        cell["id"] = name
        notebook.cells.append(cell)
    nbformat.write(notebook, lab_root / "notebooks" / "views.ipynb")
    lab_page.page.set_viewport_size({"width": 1280, "height": 1000})
    lab_page.open("views.ipynb")
    lab_page.run_all()
    return lab_page


# The page has drawn what came of the mouse, and taken away what was there before.
DRAWN = """() => new Promise((drawn) =>
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(drawn))))"""


def find_mark(page, cell):
    """Move the mouse along the middle of the picture until a state tells what it is."""
    box = cell.locator("canvas").first.bounding_box()
    for share in range(3, 60):
        page.mouse.move(box["x"] + box["width"] * share / 100, box["y"] + box["height"] * 0.5)
        page.evaluate(DRAWN)
        tips = page.locator(".bk-Tooltip")
        if tips.count():
            return tips.first
    raise AssertionError("no state tells what it is")


def test_a_state_of_the_lattice_opens_by_mouse_and_by_keyboard(page):
    """Hover tells it, a click plays it; lists and buttons do the same; nothing is cut off."""
    cell = page.show_cell("lattice")
    cell.locator("canvas").first.wait_for()
    window = page.page.evaluate("window.innerWidth")
    box = cell.locator("canvas").first.bounding_box()
    assert box["x"] + box["width"] <= window
    assert find_mark(page.page, cell).is_visible()
    page.page.mouse.down()
    page.page.mouse.up()
    stage = cell.locator(".wst")
    stage.wait_for()
    page.page.mouse.move(5, 5)

    cell.get_by_role("button", name="Nearest bad state").press("Enter")
    cell.get_by_text("Bad. The sender holds link-credit 6").wait_for()
    cell.get_by_label("after").select_option(label="0 moves: 1 state, 0 bad")
    cell.get_by_text("No moves yet: this is the initial state.").wait_for()
    cell.get_by_role("button", name="state ▶").press("Enter")
    cell.get_by_text("1 move (send-flow).").wait_for()
    cell.get_by_role("button", name="rule spec").press("Enter")
    cell.get_by_text("145 states, none of them bad").first.wait_for()
    stage.wait_for(state="detached")
    page.assert_quiet()


def test_a_green_sender_is_asked_what_it_proves_and_lines_are_moved_by_keyboard(page):
    """The breaking schedule opens; the order-the-lines exercise judges what was put together."""
    cell = page.show_cell("sender")
    cell.get_by_role("button", name="What does this prove?").press("Enter")
    cell.get_by_text("It takes 5 moves to break it").wait_for()
    cell.get_by_role("button", name="Open on the stage").press("Enter")
    cell.locator(".wst").wait_for()

    cell = page.show_cell("lines")
    offered = cell.locator("select").last
    for line in (
        "in_flight = serial.diff(state.delivery_count, frame.delivery_count)",
        "state.link_credit = max(0, left)",
        "left = frame.link_credit - in_flight",
    ):
        offered.select_option(label=line)
        cell.get_by_role("button", name="Put in").press("Enter")
        cell.locator("select").first.locator("option", has_text=line).wait_for(state="attached")
        # The two lists are redrawn one after the other; a choice made in between is lost.
        offered.locator("option", has_text=line).wait_for(state="detached")
    cell.get_by_role("button", name="Try it").press("Enter")
    cell.get_by_text("on_flow raises UnboundLocalError").wait_for()
    cell.get_by_role("button", name="Move up").press("Enter")
    cell.get_by_text("on_flow raises UnboundLocalError").wait_for(state="detached")
    cell.get_by_role("button", name="Try it").press("Enter")
    cell.get_by_text("✔ With 2 grants nothing goes wrong").wait_for()
    page.assert_quiet()
