"""The static export in a real browser, opened from disk with the network off."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from workbench.views import static_html
from workbench.views.static_html import export_html
from workbench.views.stepper_doc import build

pytestmark = pytest.mark.browser

HOSTILE = (
    "<img src=x onerror=\"document.title='run'\"></script><script>document.title='run'</script>"
)


def _race(link: str = "q"):
    """The hand-made run of the view tests."""
    path = Path(__file__).parent.parent / "views" / "conftest.py"
    spec = importlib.util.spec_from_file_location("view_stories", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.race(link)


@pytest.fixture
def opened(static_page, tmp_path):
    """Opens an export of rows; the browser is offline before the page is asked for."""

    def open_(rows, **options):
        static_page.page.context.set_offline(True)
        path = export_html(rows, tmp_path / "run.html", **options)
        static_page.page.goto(path.as_uri())
        static_page.page.wait_for_selector(".wbs")
        return static_page.page

    yield open_
    static_page.assert_quiet()


def credit(page, side: str) -> str:
    """What the ledger of that side shows for link-credit, with its mark."""
    row = page.locator(f".wbs-ledger.{side} tr", has_text="link-credit")
    return row.locator(".ne").inner_text() + row.locator(".v").inner_text()


def where(page) -> str:
    return page.locator(".wbs-where").inner_text()


def test_button_and_key_step_forward_and_back(opened):
    """▶ and → show the next state, ◀ and ← the one before: the same numbers as on the way there."""
    page = opened(_race().rows)
    assert where(page).startswith("step 0 of 8")
    page.get_by_role("button", name="one step on").click()
    assert credit(page, "receiver") == "3"
    page.keyboard.press("ArrowRight")
    assert (credit(page, "sender"), credit(page, "receiver")) == ("3", "3")
    page.locator(".wbs").focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    assert (credit(page, "sender"), credit(page, "receiver")) == ("≠1", "≠6")
    page.keyboard.press("ArrowLeft")
    assert where(page).startswith("step 5 of 8")
    page.get_by_role("button", name="one step back").click()
    assert credit(page, "sender") == "≠1"
    page.keyboard.press("Home")
    assert credit(page, "sender") == "–"
    page.keyboard.press("End")
    assert where(page).startswith("step 8 of 8")


@pytest.mark.parametrize(("begin", "first"), [(3, 4), (7, 0)])
def test_play_at_the_end_begins_where_the_set_up_ended(static_page, tmp_path, begin, first):
    """The handshake is no part of what is looked at; where there is nothing else, it is played."""
    path = tmp_path / "run.html"
    path.write_text(static_html.page(build(_race().rows, begin=begin)), encoding="utf-8")
    page = static_page.page
    page.goto(path.as_uri())
    page.wait_for_selector(".wbs")
    # Rewound by the press itself; the first tick comes later, so the clock is stopped before it
    # (installed alone it goes on by itself).
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    page.locator(".wbs").focus()
    page.keyboard.press("End")
    assert where(page).startswith("step 8 of 8")
    page.keyboard.press("Space")
    assert where(page).startswith(f"step {first} of 8")
    static_page.assert_quiet()


def test_the_sentence_is_spoken_and_the_formula_shown(opened):
    """The live region holds the sentence of the step; the formula has the step's numbers."""
    page = opened(_race().rows)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    live = page.locator("[aria-live=polite]")
    assert "may send 3 messages" in live.inner_text()
    assert "0 + 3 − 0 = 3" in page.locator(".wbs-formula").inner_text()


def test_n_and_p_go_to_interesting_steps(opened):
    """`n` stops where the transcript has its mark, `p` goes back to the one before."""
    page = opened(_race().rows)
    page.keyboard.press("n")
    first = where(page)
    assert page.locator(".wbs-chip.reason").is_visible()
    page.keyboard.press("n")
    assert where(page) != first
    page.keyboard.press("p")
    assert where(page) == first


def test_a_frame_in_flight_lies_on_the_wire_with_its_numbers(opened):
    """Between sent and received the frame is an object that can be pointed at."""
    page = opened(_race().rows)
    page.keyboard.press("ArrowRight")
    frame = page.locator(".wbs-way.left .wbs-frame")
    assert "link-credit 3" in frame.inner_text()
    page.keyboard.press("ArrowRight")
    assert "arrived" in frame.inner_text()
    page.keyboard.press("ArrowRight")
    assert frame.count() == 0
    assert page.locator(".wbs-way.right .wbs-frame").count() == 1


def test_an_octet_and_its_field_light_up_together(opened):
    """Pointing at an octet marks its field; pointing at a field marks its octets."""
    story = _race()
    raw = bytes.fromhex("00000023020000000053 13c013 09 43707fffffff 43707fffffff 4343 5202 4042")
    raw = len(raw).to_bytes(4, "big") + raw[4:]
    story.rows[0].raw = raw
    page = opened(story.rows)
    page.keyboard.press("ArrowRight")
    field = page.locator("tr[data-field]", has_text="link-credit")
    at = raw.index(b"\x52\x02")
    page.locator(f".hex [data-octet='{at + 1}']").hover()
    assert "lit" in field.get_attribute("class")
    page.locator(".wbs-sentence").hover()
    assert page.locator(".lit").count() == 0
    field.hover()
    lit = page.locator(".hex .lit")
    assert [lit.nth(i).inner_text() for i in range(lit.count())] == ["52", "02"]


def test_the_transcript_and_the_ladder_jump(opened):
    """A click on a line of the transcript, or into the ladder, goes to that step."""
    page = opened(_race().rows)
    page.locator(".wbs-lines .line[data-step='4']").click()
    assert where(page).startswith("step 4 of 8")
    page.locator(".wbs-ladder .arrow text").first.click()
    assert where(page).startswith("step 1 of 8")


def test_keys_do_nothing_outside_the_stepper(opened):
    """A key pressed elsewhere on the page belongs to the page."""
    page = opened(_race().rows)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    assert where(page).startswith("step 0 of 8")


def test_help_opens_and_closes_by_key(opened):
    """`?` shows the keys and takes the focus there; Escape gives it back."""
    page = opened(_race().rows)
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")
    assert not page.get_by_role("dialog").is_visible()
    page.keyboard.press("ArrowRight")
    assert where(page).startswith("step 1 of 8")


def test_names_from_a_trace_are_shown_and_never_run(opened):
    """A link whose name is markup is text wherever it appears."""
    page = opened(_race(HOSTILE).rows, title=HOSTILE, note=HOSTILE)
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    assert page.title() == HOSTILE
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert "<img src=x" in page.locator(".wbs-head").inner_text()
    page.keyboard.press("ArrowLeft")
    assert "<img src=x" in page.locator(".wbs-changes").inner_text()


@pytest.mark.parametrize("width", [900, 1100])
def test_nothing_overflows_the_page(opened, width):
    """At the width of a notebook's output nothing has to be scrolled sideways."""
    page = opened(_race().rows)
    page.set_viewport_size({"width": width, "height": 900})
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
