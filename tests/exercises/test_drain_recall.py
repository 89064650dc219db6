"""What later lessons ask again of lesson 03: fresh numbers, each answer from a run of its own."""

import pytest

from workbench.exercises import recall
from workbench.lessons.declare import FORMS

NAMES = ["drain-brings", "drain-counts", "after-drain", "echo-brings"]


@pytest.fixture(scope="module")
def makers():
    """The questions of lesson 03 that lesson 04 may ask."""
    return {one.name: one.make for one in recall.known({"03"})}


def test_lesson_03_makes_its_questions_known(makers):
    """Four of them, under the names by which the log keeps wrong answers."""
    assert list(makers) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_form_can_be_asked_and_solved(makers, name):
    """Any number gives a question of that name; no belief's answer is the right one."""
    seen = set()
    for form in (0, 1, 7, FORMS - 1, FORMS, 1003):
        question = makers[name](form)
        assert question.name == f"03/{name}"
        solution = question.solve()
        named = [belief.answer for belief in solution.beliefs if belief.answer != solution.answer]
        assert len(set(named)) == len(named) == len(solution.beliefs), (name, form)
        seen.add(question.text)
    assert len(seen) >= 4
