"""Every question is answered as it was when its answers were written down, in twenty forms."""

import re

import pytest

from tests.exercises import golden
from workbench.exercises.show_me import is_shown
from workbench.lessons.table import LESSONS, words_of

ASKED = golden.asked()
KEPT = golden.kept()


TAKE_UP = "python -m tests.exercises.golden says what differs; its docstring, how it is taken up"


def test_every_question_is_kept_in_twenty_forms():
    """A question that is new, gone or renamed is noticed."""
    assert KEPT.keys() == ASKED.keys(), TAKE_UP
    assert {len(forms) for forms in KEPT.values()} == {golden.NUMBER}


@pytest.mark.parametrize("name", golden.LESSONS)
def test_every_question_of_a_lesson_has_its_forms(name):
    """But for one that is only asked again, and is kept under the name of another."""
    lesson, forms = golden.LESSONS[name]
    own = {
        function
        for function, one in vars(lesson.predict).items()
        if (kept := one.words.get("kept_as", one.name)) == one.name or "{" in kept
    }
    assert own == forms.keys(), "tests/exercises/golden.py has forms of each question"


# What looks like a number in words and is none that an input could change.
NAMES = re.compile(
    r"steps? \d+(?: and \d+)?|\[\d+(?:\.\d+)*\]|AMQP \d(?:[-.]\d)+|RabbitMQ \d\.\d"
    r"|[Ll]essons? \d\d|\b[cnq]\d\b"
)
# The numbers that all forms of a question share, because they share the inputs behind them: a
# preset's credit, the size of a cluster, the recorded trace of lesson 10.
SHARED = {
    "alarms/answers": {70},
    "alarms/first_go": {5},
    "amqp091/receiver": {60, 99},
    "client/before_attach": {5, 6, 11},
    "client/rows_per_frame": {13},
    "million/longest": {8, 22, 32, 80},
    "million/most_lost": {45},
    "million/nobody": {8, 22, 32, 2096, 2894, 9952},
    "publish/beside_slow": {10000},
    "qpid/holds_most": {9, 10, 255, 800},
    "qpid/limit": {506},
    "qpid/other_queue": {10},
    "qpid/two_grants": {10},
    "quorum/beside": {20000},
    "quorum/credit_bound": {170},
    "quorum/overshoot": {255},
    "quorum/slow_disks": {3, 4, 5},
    "quorum/trigger": {3, 5},
    "race/naive": {5},
    "race/noticed": {2},
    "race/sentence": {7},
    "race/which_order": {3},
    "recall/01/after-stop": {9, 10, 19},
    "recall/02/bad-states-set": {5},
    "recall/02/naive": {5},
    "recall/02/which-order": {3},
    "recall/04/express": {2},
    "recall/04/held": {256, 500, 2147483647},
    "recall/04/stops-at": {512},
    "recall/07/overshoot": {255},
    "recall/07/slow-follower": {3, 4, 5},
    "recall/07/slow-majority": {3, 4, 5},
    "recall/07/slower-sync": {4, 8},
    "recall/07/trigger": {2, 3, 5, 6},
    "recall/08/first-go-held": {5},
    "recall/08/first-go-ready": {5},
    "recall/09/two-grants": {10},
    "windows/express": {2, 3},
    "windows/held": {256, 2147483647},
    "windows/obeys": {170},
    "windows/tolerated": {400},
}


def numbers_in(words: list[str]) -> set[int]:
    """The numbers in the words of one form, but for 0 and 1, which are words."""
    plain = NAMES.sub(" ", " ".join(words))
    return {int(found.replace(",", "")) for found in re.findall(r"\d[\d,]*\b", plain)} - {0, 1}


# A piece of the museum is one run: its forms differ in the guesses, and its numbers are those of
# its own facts (test_museum).
PIECES = [name for name in ASKED if name.startswith("recall/11/museum-")]


@pytest.mark.parametrize("name", [name for name in ASKED if name not in PIECES])
def test_every_number_in_the_words_follows_the_inputs(name):
    """From form to form the inputs change; a number that never does was written down.

    What is kept is what the runs answer (above), so the file can be asked.
    """
    forms = [numbers_in(one["words"]) for one in KEPT[name]]
    assert set.intersection(*forms) == SHARED.get(name, set())


# Questions of which some forms differ in their reasons alone.
ALIKE = {"recall/02/which-order": 2, "recall/07/trigger": 1}


@pytest.mark.parametrize("name", ASKED)
def test_a_wrong_answer_names_one_misconception(name):
    """A question of a lesson, and each form in which it is asked again."""
    again = name.startswith("recall/")
    for one in KEPT[name] if again else KEPT[name][:1]:
        wrong = [answer for answer in one["wrong"].values() if answer != one["answer"]]
        assert len(set(wrong)) == len(wrong)


@pytest.mark.parametrize("name", [name for name in ASKED if name.startswith("recall/")])
def test_a_question_that_is_asked_again_is_another_and_stands_alone(name):
    """Text, choices or answer differ from form to form, and no *now* needs a stepper above it."""
    forms = KEPT[name]
    assert not [one for one in forms if one["words"][0].startswith("Now")]
    different = {(tuple(one["words"][: 1 + one["choices"]]), one["answer"]) for one in forms}
    assert len(different) >= ALIKE.get(name, 4)


# Questions that a lesson asks in several forms, and misconceptions that its one form makes right.
SEVERAL, RIGHT_HERE = set(), {}
for lesson in LESSONS:
    for question, words in words_of(lesson.number).items():
        SEVERAL |= {question} if "forms" in words else set()
        RIGHT_HERE |= {question: set(words["right_here"])} if "right_here" in words else {}


@pytest.mark.parametrize("name", [name for name in ASKED if not name.startswith("recall/")])
def test_a_misconception_that_the_lesson_makes_right_is_told_to_be(name):
    """There is nothing to contradict; where a question has several forms, each is wrong in one."""
    question = name.partition("/")[2].replace("_", "-")
    one = KEPT[name][0]
    right = {belief for belief, answer in one["wrong"].items() if answer == one["answer"]}
    assert RIGHT_HERE.get(question, set()) == (set() if question in SEVERAL else right)


# The misconceptions of which their question's words say why they cannot be shown.
UNSHOWN = {
    f"{lesson.number}/{question}": {name for name, reason in words["unshown"].items() if reason}
    for lesson in LESSONS
    for question, words in words_of(lesson.number).items()
    if "unshown" in words
}


def same(name: str, number: int) -> None:
    """One form of a question against what is kept; and *Show me* for each of its misconceptions."""
    if name in golden.NEEDS_PROTON:
        pytest.importorskip("proton", reason="needs python-qpid-proton")
    question = ASKED[name](number)
    solution = question.solve()
    differing = list(golden.differing(KEPT[name][number], golden.entry(question, solution)))
    assert differing == [], TAKE_UP
    wrong = [one for one in solution.beliefs if one.answer != solution.answer]
    unshown = UNSHOWN.get(question.name, set()) & {one.name for one in wrong}
    hidden = {one.name for one in wrong if not is_shown(one)}
    assert hidden == unshown, "shown, beside or unshown: see workbench/lessons/declare.py"


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
