"""Index and lesson 01 in the other engine: what is drawn, clicked, pressed and typed works."""

import shlex
import sys
from pathlib import Path

import pytest

from tests.conftest import find_firefox

from .conftest import LabPage, end_sessions, new_page
from .test_lesson_01 import limits, picture, said, where

pytestmark = pytest.mark.slow


@pytest.fixture
def firefox_lab(playwright, lab_url, lab_root, tmp_path):
    """JupyterLab in a page of a Firefox; the kernels it started are ended after the test."""
    executable = find_firefox()
    if executable is None:
        pytest.skip("no Firefox on PATH (Debian: apt install firefox-esr; or WORKBENCH_FIREFOX)")
    program, between = tmp_path / "firefox", Path(__file__).with_name("firefox.py")
    line = shlex.join([sys.executable, str(between), executable])
    program.write_text(f'#!/bin/sh\nexec {line} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    browser = playwright.firefox.launch(channel="moz-firefox", executable_path=program)
    try:
        with new_page(browser) as page:
            lab = LabPage(page=page, url=lab_url, root=lab_root)
            lab.watch()
            yield lab
    finally:
        browser.close()
        end_sessions(lab_url)


def test_a_lesson_works_in_firefox(firefox_lab):
    """The first picture moves by key; a prediction is committed, seen and compared."""
    lab = firefox_lab
    lab.open("00_index.ipynb")
    lab.run_cells("imports", "first-steps")
    root = picture(lab, "first-steps")
    begin = where(root)
    lab.page.keyboard.press("ArrowRight")
    assert where(root) == begin + 1

    lab.open("01_credit.ipynb")
    lab.run_cells("imports", "queue", "grant-predict", "grant-step")
    asked = lab.show_cell("grant-predict")
    field = asked.get_by_role("textbox", name="messages")
    field.fill("10")
    field.press("Enter")
    asked.get_by_text("You say: 10").wait_for()
    root = picture(lab, "grant-step")
    assert limits(root) == ("0", "0")
    forward = root.get_by_role("button", name="one step on")
    begin = where(root)
    while where(root) < begin + 3:
        forward.click()
    assert limits(root) == ("3", "3")
    root.focus()
    lab.page.keyboard.press("End")
    assert "Sender: delivery-count 3, link-credit 0" in said(root)
    asked = lab.show_cell("grant-predict")
    asked.get_by_role("button", name="Compare").click()
    asked.get_by_text("a flow opens the tap").wait_for()
    lab.assert_quiet()
