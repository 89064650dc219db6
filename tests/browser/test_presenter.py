"""A lesson shown to a room, by the keys of a remote; and what only all of a lesson's cells tell."""

from __future__ import annotations

import re
from functools import cache

import pytest

from workbench.exercises import present as presenting
from workbench.exercises.sections import walked
from workbench.lessons.instructors import AGAIN, HERE_ALONE, names_of, questions_of
from workbench.views.presenter import Presentation, Slide

pytestmark = pytest.mark.slow

LESSONS = ("01", "02", "03", "04", "05", "06", "07", "08", "09", "12")
SMALL, LARGE, ZOOMED = (1280, 800), (1920, 1080), (853, 533)
SIZES = [(lesson, SMALL) for lesson in LESSONS] + [
    ("02", LARGE), ("07", LARGE), ("05", ZOOMED), ("08", ZOOMED),
]  # fmt: skip
# What cannot be read of a slide, at the first 25 steps of its picture and at those that have a
# mark: before the curtain and behind it.
CUT = """async () => {
  const found = new Set(), one = (what) => document.querySelector(what), main = one("main");
  const texts = "section p, li, .wst-q, .wst-sentence, .wst-formula, .wst-strip .wst-btn";
  const look = () => {
    const [all, room] = [main.scrollHeight, main.clientHeight];
    if (all > room) found.add(`main has ${all} of ${room}`);
    for (const part of main.querySelectorAll(texts)) {
      const box = part.getBoundingClientRect();
      const around = (part.closest(".wst-strip") ?? main).getBoundingClientRect();
      const out = Math.max(box.right - around.right, box.bottom - around.bottom);
      const down = part.scrollHeight - part.clientHeight;
      const across = part.scrollWidth - part.clientWidth;
      const name = part.className || part.tagName;
      if (Math.max(out, down, across) > 1) found.add(`${name}: ${part.textContent.slice(0, 60)}`);
    }
    const picture = one(".wst-picture")?.getBoundingClientRect();
    if (picture && picture.height < innerHeight * 0.4) found.add(`picture: ${picture.height}`);
  };
  for (let before = "", steps = 0; ; steps++) {
    await null;
    look();
    const now = one(".wst-say")?.textContent + one(".wst-now")?.textContent;
    if (!one(".wst") || (now === before && !one("[data-ui=skip]"))) return [...found];
    const ends = now === before;
    one(`[data-ui=${ends ? "skip" : steps < 25 ? "on" : "mark"}]`).click();
    before = ends ? "" : now;
  }
}"""


@pytest.fixture(scope="module")
def sections():
    """The sections of a lesson, whose cells have run once."""
    return cache(lambda lesson: list(walked(lesson)))


@pytest.fixture(scope="module")
def slides(sections):
    """The slides of a lesson, made once."""

    def of(lesson):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(presenting, "walked", sections)
            return presenting.present(lesson)

    return cache(of)


@pytest.fixture(scope="module")
def saved(slides, tmp_path_factory):
    """The file of a lesson's slides."""
    return cache(lambda lesson: slides(lesson).save(tmp_path_factory.mktemp("slides") / "a.html"))


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_names_in_the_notes_are_those_that_a_room_can_be_asked_by(sections, lesson):
    """A name without a mark is one that the lesson's sections ask; one with a mark is none."""
    there = {view.prediction.question.name for one in sections(lesson) for view in one.asks}
    names = [one for asked in questions_of(lesson) for one in names_of(lesson, *asked)]
    marked = {one for one in names if one.endswith(HERE_ALONE)}
    again = {one for one in names if one.endswith(AGAIN)}
    assert {f"{lesson}/{one}" for one in set(names) - marked - again} <= there
    assert not {f"{lesson}/{one.removesuffix(HERE_ALONE)}" for one in marked} & there


@pytest.mark.parametrize("lesson", ["02", "03"])
def test_slides_have_questions_and_pictures(slides, lesson):
    """And their page is below four megabytes."""
    found = slides(lesson)
    assert sum(slide.question is not None for slide in found.slides) >= 4
    assert sum(slide.scene is not None for slide in found.slides) >= 2
    assert len(found.page) < 4_000_000


@pytest.mark.browser
@pytest.mark.parametrize(("lesson", "size"), SIZES)
def test_all_of_every_slide_is_seen(static_page, saved, lesson, size):
    """Question, choices, each step's sentence and the answer, without scrolling."""
    page = static_page.page
    page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.goto(saved(lesson).as_uri())
    cut, before = [], None
    while (now := _place(page)) != before:
        cut += [f"{now}: {found}" for found in page.evaluate(CUT)]
        before = now
        page.keyboard.press("PageDown")
    assert cut == []
    number, last = re.findall(r"(\d+) of (\d+):", before)[-1]
    assert number == last  # the walk has come to the end
    static_page.assert_quiet()


def _place(page) -> str:
    """Which slide is shown, and what of it."""
    page.wait_for_selector("main > *")
    phase = page.locator("#presenter").get_attribute("data-phase")
    if phase == "look":
        page.wait_for_selector(".wst-picture")
    return f"{page.locator('.title').inner_text()}: {phase}"


@pytest.mark.browser
def test_a_remote_scrolls_to_what_is_left_before_it_goes_on(static_page, tmp_path):
    """However much there is on a small screen; and back to it from the next slide's beginning."""
    asked = {
        "text": "What happens? " * 60, "options": ["this", "that"], "free": False,
        "answer": "this", "reason": "So it is.", "wrong": [],
    }  # fmt: skip
    slides = [Slide(number=1, section="1. One", question=asked)]
    path = Presentation(number="01", title="T", minutes=5, slides=slides).save(tmp_path / "a.html")
    page = static_page.page
    page.set_viewport_size({"width": 640, "height": 360})
    page.goto(path.as_uri())
    assert _place(page).endswith("ask")
    last = page.locator("li").last
    for _ in range(10):
        if last.evaluate("(li) => li.getBoundingClientRect().bottom <= innerHeight"):
            break
        page.keyboard.press("PageDown")
        assert _place(page).endswith("ask")
    else:
        pytest.fail("the choices are never seen")
    page.keyboard.press("PageUp")
    assert not last.evaluate("(li) => li.getBoundingClientRect().bottom <= innerHeight")
    while _place(page).endswith("ask"):
        page.keyboard.press("PageDown")
    assert page.locator(".answer").inner_text() == "✔ this"


@pytest.mark.browser
def test_a_remote_goes_through_a_lesson(static_page, saved):
    """Question, picture, answer; black and back; a section by its digit; the curtain holds."""
    page = static_page.page
    page.set_viewport_size({"width": 1280, "height": 800})
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.goto(f"{saved('01').as_uri()}#section=3")
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
        if page.locator("#presenter").get_attribute("data-phase") == "told":
            break
    assert page.locator(".told .answer").inner_text() == "✔ 50"
    assert "of 25 min" in page.locator(".clock").inner_text()
    page.keyboard.press("PageUp")
    page.wait_for_selector(".wst-picture")
    page.keyboard.press("2")
    assert "Now the receiver sends one flow" in page.locator(".ask .text").inner_text()
    static_page.assert_quiet()
