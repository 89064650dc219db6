"""A lesson as slides: made of what the lesson asks and shows, the answer behind the question."""

import pytest

from workbench.exercises import sections
from workbench.exercises.headings import sections_of
from workbench.exercises.present import present
from workbench.exercises.sections import walked


def test_a_section_is_what_its_heading_and_its_cells_are():
    """Numbered as in the notebook; what stands below a heading without a number is left out."""
    found = sections_of("01")
    assert [one.number for one in found] == list(range(len(found)))
    assert found[3].title == "The same grant twice"
    assert any("predict.granted_twice" in cell for cell in found[3].cells)
    assert not any("check." in cell for one in found for cell in one.cells)


@pytest.fixture
def shortened(monkeypatch):
    """Lesson 01 up to its third section, which takes half a second."""
    whole = sections.sections_of
    monkeypatch.setattr(sections, "sections_of", lambda lesson: whole(lesson)[:4])


def test_each_question_has_its_picture_behind_a_curtain(shortened):
    """The curtain comes down at the step that the answer names, and not before."""
    slides = present("01").slides
    assert [slide.number for slide in slides] == [1, 2, 3]
    for slide in slides:
        asked, curtain = slide.question, slide.scene["question"]
        assert asked["answer"] in asked["options"]
        assert slide.step < curtain["decides"] < len(slide.scene["branches"][0]["steps"])
        assert curtain["verdicts"][asked["answer"]]["right"]
        assert "acts" not in slide.scene
    assert {one["name"] for one in slides[2].question["wrong"]} == {"adds", "everything published"}


def test_the_page_opens_at_the_section_that_is_wanted(shortened):
    """Another section is refused with those that there are."""
    assert '"opens": 3' in present("01", section=3).page
    with pytest.raises(ValueError, match="no section 9"):
        present("01", section=9)


@pytest.mark.parametrize("lesson", ["10", "11"])
def test_a_lesson_that_happens_live_has_no_slides(lesson):
    """Nothing is started: its notebook is what a room looks at."""
    with pytest.raises(ValueError, match="happens live"):
        next(walked(lesson))
