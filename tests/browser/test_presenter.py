"""A lesson shown to a room, by the keys of a remote."""

from __future__ import annotations

import pytest

from workbench.exercises.present import present

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_remote_goes_through_a_lesson(static_page, tmp_path):
    """Question, picture, answer; black and back; a section by its digit; the curtain holds."""
    page = static_page.page
    page.set_viewport_size({"width": 1280, "height": 800})
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    path = present("01").save(tmp_path / "lesson.html")
    page.goto(f"{path.as_uri()}#section=3")
    assert page.locator(".ask .text").inner_text().startswith("The queue is empty.")
    assert not page.get_by_text("✔").count()
    page.keyboard.press("b")
    assert page.locator(".black").is_visible()
    page.keyboard.press("PageDown")
    assert not page.locator(".black").is_visible()

    page.keyboard.press("PageDown")
    page.wait_for_selector(".wst-picture")
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    for _ in range(40):
        page.keyboard.press("PageDown")
        page.wait_for_timeout(50)
        if page.locator("#presenter").get_attribute("data-phase") == "told":
            break
    assert page.locator(".told .answer").inner_text() == "✔ 50"
    assert "of 25 min" in page.locator(".clock").inner_text()
    page.keyboard.press("PageUp")
    page.wait_for_selector(".wst-picture")
    page.keyboard.press("2")
    assert "Now the receiver sends one flow" in page.locator(".ask .text").inner_text()
    static_page.assert_quiet()
