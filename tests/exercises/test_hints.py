"""Confidence, hints and ranges of questions, and what checks share."""

import pytest

from workbench.exercises.checks import checks, not_yet, told
from workbench.exercises.predict import PredictionView
from workbench.exercises.progress import CONFIDENCES, GUESS, SURE, THINK, Progress
from workbench.exercises.question import AnswerError, Prediction, Question, Solution
from workbench.lessons import lesson_01
from workbench.scenarios import run
from workbench.scenarios.run import Run, step_of

SOLUTION = Solution(answer=7, reason="Seven came.")


def question(**more) -> Question:
    """A question whose run says seven."""
    return Question(name="01/seven", text="How many come?", solve=lambda: SOLUTION, **more)


def view(**more) -> tuple[PredictionView, Progress]:
    """A widget with a log of its own."""
    log = Progress()
    return PredictionView(Prediction(question(**more)), log), log


# -- how sure -------------------------------------------------------------------------------------


def answer(shown: PredictionView, given: str) -> None:
    """Commit and compare."""
    shown.field.value = given
    shown.commit.click()
    shown.compare.click()


@pytest.mark.parametrize("confidence", [SURE, THINK, GUESS, None])
def test_how_sure_the_learner_was_is_recorded(confidence):
    """One of three, or nothing: it may be left out, and none is preselected."""
    shown, log = view()
    assert shown.confidence.value is None
    assert tuple(value for _, value in shown.confidence.options) == CONFIDENCES
    shown.confidence.value = confidence
    answer(shown, "9")
    assert log.records[0].confidence == confidence
    assert ("You were sure here" in shown.line.value) is (confidence == SURE)


def test_a_right_answer_is_no_surprise():
    """Being sure and right is told as right and nothing more."""
    shown, log = view()
    shown.confidence.value = SURE
    answer(shown, "7")
    assert "You were sure here" not in shown.line.value
    assert log.sure_and_wrong() == []


def test_how_sure_can_be_said_by_keyboard():
    """Radio buttons are: Tab and the space bar; what they ask is said before them."""
    shown, _ = view()
    assert shown.confidence._view_name == "RadioButtonsView"
    assert shown.confidence.description == "how sure?"


def test_a_choice_is_offered_without_the_marks_of_code():
    """A radio button's label is plain text; what is committed is the choice as it is written."""
    shown, _ = view(choices=("its `available`", "nobody"))
    assert [label for label, _ in shown.field.options] == ["its available", "nobody"]
    shown.field.index = 0
    assert shown.field.value == "its `available`"


# -- ranges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["11", "99999", "9" * 30, "-1", "2.5", "ten", ""])
def test_a_number_outside_the_range_is_asked_again(given):
    """With the range in words; nothing is recorded, and an earlier answer stands."""
    shown, log = view(minimum=0, maximum=10)
    answer(shown, "3")
    shown.field.value = given
    shown.commit.click()
    assert "Give a whole number from 0 to 10." in shown.line.value
    assert shown.prediction.answer == 3
    assert len(log.records) == 1


def test_a_range_may_go_below_zero():
    """Both minus signs are understood."""
    asked = question(minimum=-5, maximum=5)
    assert asked.read("-5") == asked.read("\u22125") == -5
    with pytest.raises(AnswerError, match=r"\u22126.* from \u22125 to 5"):
        asked.read("-6")
    with pytest.raises(AnswerError, match="no count"):
        question().read("-6")


# -- hints of a question --------------------------------------------------------------------------


def test_hints_come_one_by_one_and_are_counted():
    """A text, or worked out when it is asked for; the record says how many were looked at."""
    made: list[int] = []

    def second() -> str:
        made.append(1)
        return "Between 6 and 8."

    shown, log = view(hints=("Count the transfers.", second))
    assert shown.hint.description == "Hint 1 of 2"
    shown.hint.click()
    assert "Hint 1: Count the transfers." in shown.hints.value
    assert made == []
    answer(shown, "9")
    shown.hint.click()
    assert "Hint 2: Between 6 and 8." in shown.hints.value
    assert shown.hint.disabled
    assert shown.hint.description == "No more hints"
    answer(shown, "7")
    assert [record.hints for record in log.records] == [1, 2]
    assert "with 2 hints" in str(log)
    assert "Hint 2: Between 6 and 8." in repr(shown)


def test_a_hint_is_text():
    """Nothing in it becomes part of the page."""
    shown, _ = view(hints=("<b>x</b>",))
    shown.hint.click()
    assert "<b>" not in shown.hints.value


def test_a_question_without_hints_has_no_hint_button():
    """A button that does nothing would only be in the way."""
    for hints, there in (((), False), (("Look.",), True)):
        shown, _ = view(hints=hints)
        inner = [child for box in shown.children for child in getattr(box, "children", ())]
        assert (shown.hint in inner) is there
    assert Prediction(question()).hint() is None


# -- checks ---------------------------------------------------------------------------------------


@checks("01", "even", hints=("It is even.", lambda number: f"{number} + 1 is {number + 1}."))
def even(number):
    """Is the number even?"""
    if number is ...:
        return not_yet("Put a number in.")
    return told(number, number % 2 == 0, f"{number} it is.", "odd" if number % 2 else None)


def test_a_check_judges_and_records():
    """Verdict, answer, belief; what is not answered yet is not recorded."""
    log = Progress()
    assert even(..., log=log).right is None
    assert log.records == []
    assert even(3, log=log).right is False
    assert even(4, log=log).right is True
    assert [(one.name, one.answer, one.belief) for one in log.records] == [
        ("01/even", "3", "odd"),
        ("01/even", "4", None),
    ]


def test_a_check_s_hints_are_asked_for_one_by_one():
    """The verdict says how to get the next; the log keeps the most that were ever looked at."""
    log = Progress()
    assert "put hints=1 as the last argument" in str(even(3, log=log))
    hinted = even(3, log=log, hints=1)
    assert hinted.hints == ("It is even.",)
    assert "put hints=2" in hinted.more
    assert "Hint 2: 5 + 1 is 6." in str(even(5, log=log, hints=2))
    assert even(5, log=log, hints=99).more == "That was the last hint."
    done = even(4, log=log)
    assert (done.hints, done.more) == ((), "")
    assert [one.hints for one in log.records] == [0, 2, 2]
    assert even(4, log=Progress()).hints == ()


def test_a_check_keeps_its_name_and_words():
    """`help(check.even)` says what it asks."""
    assert even.__name__ == "even"
    assert even.__doc__ == "Is the number even?"


def test_a_check_takes_a_run_or_a_stage():
    """Anything else is the lesson's mistake."""
    played = run("credit")
    assert Run.shown_by(played) is played
    with pytest.raises(TypeError, match="a stage or a run is wanted here, not int"):
        Run.shown_by(3)


@checks("01", "of-the-race", scenarios=("race",))
def of_the_race(desk):
    """Is it any run of the race?"""
    return told(Run.shown_by(desk).name, True, "It is.")


def test_a_check_that_gets_another_lesson_s_desk_says_which_one_it_wants():
    """It is a slip, not an answer: nothing is recorded, nothing fails."""
    log = Progress()
    verdict = of_the_race(run("credit"), log=log)
    assert verdict.right is None
    assert 'a run of the scenario "race"; this one shows "credit"' in str(verdict)
    assert log.records == []
    assert of_the_race(run("race"), log=log).right is True


def test_the_hints_of_lesson_01_are_worked_out_from_the_run():
    """They name steps and times of the learner's own run, and never the answer."""
    queue = run("credit", parameters={"messages": 60})
    granted = queue.act(queue.start_seq, "grant", link_credit=40)
    verdict = lesson_01.check.late_arrivals(granted, log=Progress(), hints=2)
    leaves = next(row for row in granted.rows if row.kind == "transfer")
    assert f"leaves at step {step_of(leaves)}:" in verdict.hints[1]
    assert "grant something first" in lesson_01.check.late_arrivals(
        queue.act(queue.start_seq, "publish"), log=Progress(), hints=2
    ).hints[1]  # fmt: skip
    given = {"latency_us": 1000, "messages": 400}
    low = lesson_01.check.smallest_n(1, **given, log=Progress(), hints=2)
    slow = lesson_01.check.smallest_n(1, latency_us=3000, messages=400, log=Progress(), hints=2)
    assert "ms pass" in low.hints[1]
    assert low.hints[1] != slow.hints[1]
    few = lesson_01.check.never_more_than(granted, 3, log=Progress(), hints=2)
    assert "60 messages with at most 3 at a time" in few.hints[1]
