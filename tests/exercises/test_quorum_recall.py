"""What later lessons ask again of lesson 07: fresh numbers, each answer from a run of its own."""

import pytest

from workbench.exercises import recall
from workbench.exercises.quorum_recall import FORMS

NAMES = [
    "trigger",
    "slow-follower",
    "slow-majority",
    "twice",
    "slower-sync",
    "soft-limit",
    "overshoot",
]


@pytest.fixture(scope="module")
def makers():
    """The questions of lesson 07 that lesson 08 may ask."""
    return {one.name: one.make for one in recall.known({"07"})}


def test_lesson_07_makes_its_questions_known(makers):
    """Under the names by which the log keeps wrong answers."""
    assert list(makers) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_form_can_be_asked_and_solved(makers, name):
    """Any number gives a question of that name; no belief's answer is named twice."""
    seen = set()
    for form in (0, 1, 7, FORMS - 1, FORMS, 1003):
        question = makers[name](form)
        assert question.name == f"07/{name}"
        solution = question.solve()
        assert not question.choices or solution.answer in question.choices
        named = [belief.answer for belief in solution.beliefs if belief.answer != solution.answer]
        assert len(set(named)) == len(named), (name, form)
        seen.add((question.text, solution.answer))
    assert len(seen) >= (1 if name == "trigger" else 4)
