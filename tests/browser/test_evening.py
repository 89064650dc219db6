"""A trainer's evening: three learners answer in kernels of their own, and the room looks at it."""

from __future__ import annotations

import re

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ASK = (
    "from workbench import run\nfrom workbench.lessons.lesson_01 import predict\n"
    'empty = run("credit", seed=1, parameters={"messages": 0})\n'
    "predict.granted_twice(empty, link_credit=50, publish=120)"
)
TRAINER = {
    "imports": "from workbench import classroom, present",
    "room": 'classroom("01/granted-twice")',
    "slides": 'present("01", section=3)',
}
CODE = re.compile(r"\b[0-9A-Z]{4}-[0-9A-Z]{4}\b")


def written(folder, name: str, cells: dict[str, str]) -> str:
    """A notebook with these cells."""
    made = [nbformat.v4.new_code_cell(source, id=key) for key, source in cells.items()]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=made, metadata=kernel), folder / name)
    return name


def test_a_trainers_evening(lab_page, lab_root, home, tmp_path_factory):
    """Codes are read out and pasted, the misconception plays, and slides go by a remote's keys."""
    lab, folder = lab_page, lab_root / "notebooks"
    pictures = tmp_path_factory.mktemp("evening")
    codes = []
    for number, answer in enumerate(("100", "100", "50")):
        (home / "progress.jsonl").unlink(missing_ok=True)  # another learner, another home
        lab.open(written(folder, f"learner_{number}.ipynb", {"ask": ASK}))
        lab.run_all()
        asked = lab.show_cell("ask")
        field = asked.get_by_role("textbox", name="messages")
        field.wait_for()
        field.fill(answer)
        field.press("Enter")
        asked.get_by_text("In a class, your code").wait_for()
        codes.append(CODE.search(asked.inner_text())[0])
    asked.screenshot(path=pictures / "code.png")
    assert len(set(codes)) == 2

    lab.open(written(folder, "trainer.ipynb", TRAINER))
    lab.run_all()
    room = lab.show_cell("room")
    pasted = [f"Anna {codes[0]}", "hello?", f"Ben: {codes[1].lower()} !", f"09:01 Eva {codes[2]}"]
    room.locator("textarea").fill("\n".join(pasted))
    room.get_by_role("button", name="Draw").click()
    room.get_by_text("3 answers read. 1 line could not be read: “hello?”").wait_for()
    room.locator(".bk-Canvas, canvas").first.wait_for()
    row = room.get_by_role("row", name="adds")
    assert row.get_by_role("cell").all_inner_texts()[1:] == ["2", "0"]
    room.screenshot(path=pictures / "room.png")
    key = room.get_by_role("button", name="Show “adds”")
    key.focus()
    lab.page.keyboard.press("Enter")
    stage = room.locator(".wst")
    stage.get_by_text("Here they part").wait_for()  # it played by itself, up to there
    room.screenshot(path=pictures / "played.png")

    slides = lab.show_cell("slides").frame_locator("iframe")
    slides.get_by_text("The queue is empty.").wait_for()
    slides.locator("main").click()
    lab.page.keyboard.press("PageDown")
    slides.locator(".wst-picture").wait_for()
    lab.page.keyboard.press("b")
    slides.locator(".black").wait_for()
    lab.page.keyboard.press("b")
    slides.locator(".black").wait_for(state="hidden")
    lab.page.keyboard.press("PageUp")
    slides.locator(".ask").wait_for()
    lab.assert_quiet()
