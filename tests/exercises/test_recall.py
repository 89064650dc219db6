"""Asking again: which questions, in which form, and that answers come from fresh runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import TIMEOUT_S
from workbench.exercises import recall
from workbench.exercises.progress import GUESS, SURE, Progress
from workbench.exercises.question import Question, Solution
from workbench.exercises.recall_view import RecallView

REPO = Path(__file__).resolve().parent.parent.parent


def chosen(lesson: str, log: Progress) -> list[str]:
    """The names of the questions that a lesson begins with."""
    return [f"{one.lesson}/{one.name}" for one, _ in recall.choose(lesson, log)]


def taken(*lessons: str) -> Progress:
    """The log of somebody who answered something in these lessons."""
    log = Progress()
    for lesson in lessons:
        log.record(f"{lesson}/first-of-all", 1, True)
    return log


@pytest.fixture
def small(monkeypatch):
    """Two lessons with six questions whose answer is the number of the form."""

    def make(name: str):
        def maker(form: int) -> Question:
            solution = Solution(answer=form, reason="Counted.")
            return Question(name=name, text=f"{name}, form {form}?", solve=lambda: solution)

        return maker

    monkeypatch.setattr(recall, "MODULES", {"01": "workbench", "02": "workbench"})
    monkeypatch.setattr(recall, "_REGISTERED", {})
    for lesson, names in (("01", "abcd"), ("02", "xy")):
        for name in names:
            recall.register(lesson, name)(make(f"{lesson}/{name}"))


# -- which questions ----------------------------------------------------------------------------


def test_three_questions_are_asked_of_lessons_that_were_taken(small):
    """Lesson 02 asks about 01, lesson 03 about both, and of lesson 02 only if it was taken."""
    assert len(set(chosen("02", taken("01")))) == 3
    assert {name[:2] for name in chosen("03", taken("01", "02"))} == {"01", "02"}
    assert {name[:2] for name in chosen("03", taken("01"))} == {"01"}
    assert {name[:2] for name in chosen("11", taken("02"))} == {"02"}


def test_nothing_is_asked_of_somebody_who_has_taken_nothing(small):
    """What was asked again, and not in its own lesson, does not count as taken."""
    log = Progress()
    log.record("01/a", 1, False, recalled_in="02")
    for lesson in ("01", "02", "03", "11"):
        assert chosen(lesson, log) == []


def test_a_lesson_asks_neither_of_itself_nor_of_those_that_build_on_it(small):
    """Lesson 02 is taken once more: of lesson 02 nothing, of 01 three; 01 asks nothing of 02."""
    assert {name[:2] for name in chosen("02", taken("01", "02"))} == {"01"}
    assert chosen("01", taken("01", "02")) == []


def test_what_a_lesson_builds_on_comes_before_what_else_was_taken(small):
    """Lesson 04 builds on 01 and not on 02; a mistake in 02 comes back in it all the same."""
    log = taken("01", "02")
    assert {name[:2] for name in chosen("04", log)} == {"01"}
    log.record("02/y", 1, False)
    assert chosen("04", log)[0] == "02/y"


def test_the_choice_is_the_same_each_time_and_differs_between_lessons(small):
    """No chance in it: a trainer can say what will be asked of somebody new."""
    log = taken("01", "02")
    assert chosen("03", log) == chosen("03", log)
    asked = {name for lesson in ("03", "04", "05") for name in chosen(lesson, log)}
    assert len(asked) > 3


def test_sure_and_wrong_comes_first_then_wrong(small):
    """What somebody is wrongly sure of is asked before what they guessed wrong."""
    log = Progress()
    log.record("01/d", 1, False, confidence=GUESS)
    log.record("01/b", 1, False, confidence=SURE)
    log.record("01/b", 2, True)
    log.record("01/a", 2, True, confidence=SURE)
    assert chosen("02", log)[:2] == ["01/b", "01/d"]
    assert chosen("03", log)[:2] == ["01/b", "01/d"]


def test_what_was_recalled_rightly_is_settled(small):
    """It comes after what has not been asked again, until it is answered wrong once more."""
    log = Progress()
    log.record("01/b", 1, False, confidence=SURE)
    log.record("01/b", 2, True, recalled_in="02")
    assert "01/b" not in chosen("03", log)
    log.record("01/b", 1, False, recalled_in="03")
    assert "01/b" not in chosen("03", log)
    assert chosen("04", log)[0] == "01/b"


def test_answering_does_not_change_what_the_cell_asks(small):
    """Whoever runs the recall's cell again meets the same questions in the same form."""
    log = Progress()
    log.record("01/c", 1, False, confidence=SURE)
    before = [(one.name, form) for one, form in recall.choose("02", log)]
    log.record("01/c", 5, True, recalled_in="02")
    assert [(one.name, form) for one, form in recall.choose("02", log)] == before


def test_the_next_lesson_asks_in_another_form(small):
    """The numbers of the last time are no help."""
    log = taken("01")
    forms = set()
    for lesson in ("02", "03", "04"):
        forms |= {form for one, form in recall.choose(lesson, log) if one.lesson == "01"}
    assert len(forms) == 3


# -- the real ones --------------------------------------------------------------------------------


def test_a_lesson_s_questions_are_found_without_importing_the_lesson():
    """In a fresh kernel: `recall` knows where they are."""
    program = "from workbench.exercises import recall; print(len(recall.known({'01'})))"
    told = subprocess.run(
        [sys.executable, "-c", program],
        cwd=REPO, capture_output=True, text=True, check=True, timeout=TIMEOUT_S,
    ).stdout  # fmt: skip
    assert int(told) >= 3


# -- the widget -----------------------------------------------------------------------------------


def test_a_recall_is_kept_apart_from_the_lesson_s_own_answers(small):
    """The record says which lesson asked again, and how sure the learner was."""
    log = taken("01")
    view = RecallView("02", log)
    assert len(view.asked) == 3
    first = view.asked[0]
    assert "From lesson 01." in first.heading.value
    first.field.value = "0"
    first.confidence.value = SURE
    first.commit.click()
    assert "Press Compare" in first.line.value
    first.compare.click()
    record = log.records[-1]
    assert (record.lesson, record.recalled_in, record.confidence) == ("01", "02", "sure")
    assert "You were sure here" in first.line.value
    assert log.summary("01") == "1 answered, 1 right, 1 sure and wrong"


def test_a_page_without_a_kernel_keeps_the_questions(small):
    """All three, as text; and where there is nothing to ask, why."""
    view = RecallView("02", taken("01"))
    bundle = view._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert data["text/plain"].count("Predict: 01/") == 3
    assert "Nothing to recall yet" in repr(RecallView("02", Progress()))
