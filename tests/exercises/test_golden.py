"""Every question is answered as it was when its answers were written down, in twenty forms."""

import pytest

from tests.exercises import golden

ASKED = golden.asked()
KEPT = golden.kept()


def test_every_question_is_kept_in_twenty_forms():
    """A question that is new, gone or renamed is noticed."""
    assert KEPT.keys() == ASKED.keys()
    assert len([name for name in ASKED if not name.startswith("recall/")]) == 68
    assert {len(forms) for forms in KEPT.values()} == {golden.NUMBER}


def same(name: str, number: int) -> None:
    """One form of a question against what is kept."""
    if name in golden.NEEDS_PROTON:
        pytest.importorskip("proton", reason="needs python-qpid-proton")
    new = golden.form(ASKED[name], number)
    assert list(golden.differing(KEPT[name][number], new)) == []


@pytest.mark.parametrize(("place", "name"), list(enumerate(ASKED)), ids=list(ASKED))
def test_a_form_of_each_question_is_answered_as_before(place, name):
    """Answer, misconceptions, their reasons, and where it can be seen; the forms take turns."""
    same(name, place % golden.NUMBER)


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_every_form_of_a_question_is_answered_as_before(name):
    """The same of all twenty."""
    for number in range(golden.NUMBER):
        same(name, number)
