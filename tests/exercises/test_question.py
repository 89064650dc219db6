"""Asking first: what is an answer, what is told about it, and that nothing is given away before."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.exercises.codes import code_of
from workbench.exercises.predict import PredictionView
from workbench.exercises.progress import Progress
from workbench.exercises.question import (
    AnswerError,
    Belief,
    Prediction,
    Question,
    Solution,
    Stage,
    judge,
)
from workbench.lessons.lesson_01 import predict
from workbench.scenarios import run
from workbench.views.stage_widget import StageWidget

SOLUTION = Solution(
    answer=7,
    reason="Seven came, rows 20 to 26.",
    beliefs=(Belief(name="adds", answer=14, because="7 + 7 is no sum on the wire."),),
)


def question(solve=lambda: SOLUTION, **more) -> Question:
    """A question whose run says seven."""
    return Question(name="01/seven", text="How many come?", solve=solve, **more)


@pytest.mark.parametrize(
    ("given", "meant"), [("7", 7), (" 7 ", 7), (7, 7), ("1,000", 1000), ("0", 0)]
)
def test_a_number_is_read_as_people_write_it(given, meant):
    """Blanks around it and separators inside it do not matter."""
    assert question().read(given) == meant


@pytest.mark.parametrize("given", ["", "seven", "-1", "7.5", "4294967296", "٣", "9" * 5000, None])
def test_what_is_no_count_is_refused_with_what_would_be(given):
    """The refusal names the legal range in one line, however long the input was."""
    with pytest.raises(AnswerError, match="whole number from 0 to 4294967295") as refusal:
        question().read(given)
    assert len(str(refusal.value)) < 160


def test_a_choice_must_be_one_of_the_choices():
    """Anything else is answered with the list."""
    chosen = question(choices=("this", "that"))
    assert chosen.read("that") == "that"
    with pytest.raises(AnswerError, match="this, that"):
        chosen.read("neither")


@pytest.mark.parametrize(
    ("answer", "right", "belief", "telling"),
    [
        (7, True, None, "Seven came"),
        (
            14,
            False,
            "adds",
            "You said: 14. In this run: 7. That is the misconception “adds”: 7 +",
        ),
        (9, False, None, "You said: 9. In this run: 7. Seven came"),
    ],
)
def test_a_verdict_explains_with_the_run_s_numbers(answer, right, belief, telling):
    """Right answers get the reason, wrong ones the belief behind them as well."""
    verdict = judge(answer, SOLUTION)
    assert (verdict.right, verdict.belief) == (right, belief)
    assert bool(verdict) is right
    assert telling in str(verdict)
    assert "Seven came, rows 20 to 26." in str(verdict)


def test_a_belief_that_happens_to_be_right_is_no_mistake():
    """Where two ways of thinking give the same number, nobody is told off."""
    lucky = Solution(answer=7, reason="", beliefs=(Belief(name="adds", answer=7, because=""),))
    assert lucky.belief_of(7) is None
    assert judge(7, lucky).right


def test_the_run_is_looked_at_only_after_an_answer():
    """Asking works nothing out; comparing does, each time anew."""
    looked: list[int] = []

    def solve() -> Solution:
        looked.append(1)
        return SOLUTION

    asked = Prediction(question(solve))
    assert asked.compare().right is None
    assert looked == []
    asked.commit("9")
    assert looked == []
    assert asked.compare().right is False
    asked.commit("7")
    assert asked.verdict is None
    assert asked.compare().right is True
    assert len(looked) == 2
    assert asked.answers == [9, 7]


def test_a_refused_answer_leaves_the_earlier_one():
    """A slip does not wipe out what was committed."""
    asked = Prediction(question())
    asked.commit("7")
    with pytest.raises(AnswerError):
        asked.commit("many")
    assert asked.answer == 7


def view(**more) -> tuple[PredictionView, Progress]:
    """A widget with a log of its own."""
    log = Progress()
    return PredictionView(Prediction(question(**more)), log), log


def test_the_widget_commits_and_then_compares():
    """Two presses: Compare cannot be pressed before something was committed."""
    shown, log = view()
    assert shown.compare.disabled
    shown.field.value = "14"
    shown.commit.click()
    assert not shown.compare.disabled
    assert "You say: 14" in shown.line.value
    assert "7" not in shown.line.value
    assert log.entries == {}
    shown.compare.click()
    assert "misconception “adds”" in shown.line.value
    shown.field.value = "7"
    shown.commit.click()
    shown.compare.click()
    assert "✔ Right." in shown.line.value
    entry = log.entries["01/seven"]
    assert (entry.answers, entry.right, entry.first_right) == (["14", "7"], True, False)
    assert entry.belief == "adds"


def test_compare_waits_until_the_step_was_looked_at():
    """It says which step; with another run's picture, or a step before it, nothing is compared."""
    # A run of its own: no other test has looked at it.
    played = run("credit", parameters={"latency_us": 1_001}).act(26, "grant", link_credit=3)
    deciding = played.rows[30]
    told = Solution(answer=7, reason="Seven came.", seen=deciding)
    shown, log = view(solve=lambda: told)
    shown.field.value = "7"
    shown.commit.click()
    shown.compare.click()
    assert "Look first: go to step 5 in" in shown.line.value
    other = StageWidget(run("credit", parameters={"messages": 40}))
    widget = StageWidget(played)
    other.cursor = 5
    widget.cursor = 29
    shown.compare.click()
    assert "Look first" in shown.line.value
    assert log.entries == {}
    widget.cursor = 30
    shown.compare.click()
    assert "✔ Right." in shown.line.value


def test_where_the_picture_opens_nobody_is_sent_to_step_1():
    """The picture stands there from the beginning: to look is to do something in it."""
    played = run("race")
    told = Solution(answer=7, reason="Seven came.", seen=played.rows[played.start_seq])
    shown, _ = view(solve=lambda: told)
    widget = StageWidget(played)
    shown.field.value = "7"
    shown.commit.click()
    shown.compare.click()
    assert "Look first: step or act in the picture of this run" in shown.line.value
    widget.cursor -= 1
    shown.compare.click()
    assert "✔ Right." in shown.line.value


def test_who_insists_may_give_up():
    """After Compare was refused, and not before: the answer stands, and the run judges it."""
    deciding = run("credit", parameters={"messages": 41}).rows[-1]
    shown, log = view(solve=lambda: Solution(answer=7, reason="Seven came.", seen=deciding))
    assert shown.give_up.layout.display == "none"
    shown.field.value = "5"
    shown.commit.click()
    assert shown.give_up.layout.display == "none"
    shown.compare.click()
    assert shown.give_up.layout.display is None
    shown.give_up.click()
    assert "You said: 5. In this run: 7. Seven came." in shown.line.value
    assert shown.give_up.layout.display == "none"
    assert log.entries["01/seven"].answers == ["5"]


def test_what_stands_in_the_field_is_what_is_compared():
    """Not what was committed before it was corrected; what is no answer is told, and stays so."""
    shown, log = view()
    tries = {"14": "You said: 14.", "many": "is no count of messages", "7": "✔ Right."}
    for typed, told in tries.items():
        shown.field.value = typed
        if shown.compare.disabled:
            shown.commit.click()
        shown.compare.click()
        assert told in shown.line.value
    assert log.entries["01/seven"].answers == ["14", "7"]


def test_who_gives_up_gives_up_on_what_stands_in_the_field():
    """As whoever compares does."""
    deciding = run("credit", parameters={"messages": 41}).rows[-1]
    shown, _ = view(solve=lambda: Solution(answer=7, reason="Seven came.", seen=deciding))
    shown.field.value = "14"
    shown.commit.click()
    shown.compare.click()
    shown.field.value = "many"
    shown.give_up.click()
    assert "is no count of messages" in shown.line.value
    shown.field.value = "5"
    shown.give_up.click()
    assert "You said: 5. In this run: 7. Seven came." in shown.line.value


ACTS = ("5", "many", "compare", "look", "give up", "remember")


@given(st.lists(st.sampled_from(ACTS)))
def test_nothing_is_compared_before_it_was_committed_and_looked_at(acts):
    """Whatever a learner does in whatever order; and what is not legal changes nothing."""
    seen: set[int] = set()
    told = replace(SOLUTION, seen=run("credit").rows[0])
    asked = Prediction(question(lambda: told))
    committed, may_see, refused = [], False, False
    for act in acts:
        before, verdict = (asked.stage, list(asked.answers)), None
        if act == "look":
            seen.add(told.seen.seq)
        elif act == "compare":
            verdict = asked.compare(lambda row: row.seq in seen)
            may_see |= bool(committed and seen)
            refused |= bool(committed and not may_see)
        elif act == "give up" and asked.stage is not Stage.UNSEEN:
            with pytest.raises(KeyError):
                asked.give_up()
        elif act == "give up":
            assert refused
            verdict, may_see = asked.give_up(), True
        elif act == "remember" and committed:
            with pytest.raises(KeyError):
                asked.remember("5")
        elif act == "many":
            with pytest.raises(AnswerError):
                asked.commit(act)
        else:
            may_see |= act == "remember"
            committed.append((asked.remember if act == "remember" else asked.commit)("5"))
        if verdict is None and len(committed) == len(before[1]):
            assert (asked.stage, asked.answers) == before
        if verdict is not None:
            assert (verdict.right is not None) == (bool(committed) and may_see)
            assert (asked.stage is Stage.COMPARED) == (verdict.right is not None)
        assert asked.answers == committed
        assert (asked.stage is Stage.ASKED) == (not committed)


def test_what_is_asked_again_stands_alone_and_waits_for_no_step():
    """A recall has no picture."""
    told = Solution(answer=7, reason="Seven came.", seen=run("credit").rows[-1])
    asked = Prediction(question(lambda: told))
    shown = PredictionView(asked, Progress(), recalled_in="02")
    shown.field.value = "7"
    shown.commit.click()
    shown.compare.click()
    assert "✔ Right." in shown.line.value


def test_the_enter_key_commits():
    """Nobody needs a mouse: the field's own submit message is a press of Commit."""
    shown, _ = view()
    shown.field.value = "3"
    custom = {"method": "custom", "content": {"event": "submit"}}
    shown.field._handle_msg({"content": {"data": custom}, "buffers": []})
    assert shown.prediction.answer == 3


def test_the_widget_tells_what_is_no_answer():
    """The line below the field says what would be one, and is announced by screen readers."""
    shown, _ = view()
    shown.field.value = "<b>lots</b>"
    shown.commit.click()
    assert "&lt;b&gt;lots&lt;/b&gt;" in shown.line.value
    assert 'role="status"' in shown.line.value
    assert shown.compare.disabled


def test_choices_are_asked_for_without_one_preselected():
    """A learner has to decide: Commit without a choice asks for one."""
    shown, log = view(choices=("this", "that"))
    assert shown.field.value is None
    shown.commit.click()
    assert "Choose one of: this, that." in shown.line.value
    shown.field.value = "this"
    shown.commit.click()
    shown.compare.click()
    assert log.entries["01/seven"].answers == ["this"]


@pytest.mark.parametrize(
    ("choices", "answer", "right", "mark"),
    [((), "5", False, "✘ Not quite."), ((), "7", True, "✔ Right."),
     (("this", "that"), "that", False, "✘ Not quite.")],
)  # fmt: skip
def test_an_answer_is_there_again_on_another_day(choices, answer, right, mark):
    """Field, confidence and verdict; nothing is worked out or recorded until Compare is pressed."""

    def never() -> Solution:
        raise AssertionError

    log = Progress()
    log.record("01/seven", 1, False, confidence="a guess")
    log.record("01/seven", answer, right, confidence="sure")
    log.record("01/seven", 2, False, recalled_in="03")
    records = list(log.records)
    asked = question(choices=choices, solve=never)
    shown = PredictionView(Prediction(asked), log)
    assert (shown.field.value, shown.confidence.value) == (answer, "sure")
    assert f"You said before: {answer}. {mark}" in shown.line.value
    assert not shown.compare.disabled
    assert f"Committed: {answer}" in repr(shown)
    assert log.records == records


@pytest.mark.parametrize("confidence", [None, "sure"])
def test_an_answer_of_another_day_has_its_code_again(confidence):
    """A class may ask for it after the kernel was restarted."""
    log = Progress()
    log.record("01/seven", 5, False, confidence=confidence)
    asked = question()
    shown = PredictionView(Prediction(asked), log)
    assert code_of(asked, 5, confidence) in shown.code.value


def test_an_answer_that_comes_later_is_put_back_where_none_was_given():
    """A copy in the browser arrives after the cell has run; what was committed since then stays."""
    log, copy = Progress(), Progress()
    copy.record("01/seven", 5, False)
    empty, begun = (PredictionView(Prediction(question()), log) for _ in range(2))
    begun.field.value = "14"
    begun.commit.click()
    log.merge(copy.text().encode())
    assert (empty.field.value, empty.prediction.answer) == ("5", 5)
    assert (begun.field.value, begun.prediction.answer) == ("14", 14)


def test_an_answer_of_another_day_is_compared_without_its_step():
    """The run has judged it before: Compare tells why at once, for a changed answer too."""
    told = Solution(answer=7, reason="Seven came.", seen=run("credit").rows[-1])
    log = Progress()
    log.record("01/seven", 5, False)
    shown = PredictionView(Prediction(question(solve=lambda: told)), log)
    shown.compare.click()
    assert "You said: 5. In this run: 7. Seven came." in shown.line.value
    shown.field.value = "7"
    shown.commit.click()
    shown.compare.click()
    assert "✔ Right." in shown.line.value


def test_an_answer_to_another_question_of_that_name_is_not_put_back():
    """The lesson has changed, and what was answered is no answer any more."""
    log = Progress()
    log.record("01/seven", "that", True)
    shown = PredictionView(Prediction(question()), log)
    assert shown.field.value == ""
    assert shown.compare.disabled


def test_an_answer_to_other_numbers_is_not_put_back():
    """What was wrong of one broker may be right of another; each has its own answer back."""
    log = Progress()
    seven, eight = (
        replace(
            question(solve=lambda many=many: Solution(answer=many, reason="So many came.")),
            text=f"How many come of {many}?",
        )
        for many in (7, 8)
    )
    for asked in (seven, eight):
        shown = PredictionView(Prediction(asked), log)
        assert (shown.field.value, shown.line.value) == ("", "")
        shown.field.value = "7"
        shown.compare.click()
    said = [PredictionView(Prediction(asked), log).line.value for asked in (seven, eight)]
    assert "You said before: 7. ✔" in said[0]
    assert "You said before: 7. ✘" in said[1]


def test_nothing_that_is_sent_to_the_browser_gives_the_answer_away():
    """Neither the widget's state nor its still holds the solution before Compare."""
    shown, _ = view(solve=lambda: Solution(answer="only this", reason="It is only this."))
    boxes = [child for child in shown.children if hasattr(child, "children")]
    inner = [child for box in boxes for child in box.children]
    states = [child.get_state() for child in (shown, *shown.children, *inner)]
    assert shown.field in inner
    assert "only this" not in str(states)
    assert "only this" not in repr(shown)


def test_a_page_without_a_kernel_keeps_question_and_verdict_as_text():
    """The still is plain text: question, choices, answer and what came of it."""
    shown, _ = view(choices=("this", "that"))
    bundle = shown._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/plain"].splitlines() == ["Predict: How many come?", "Choices: this; that"]


def test_what_a_run_cannot_do_is_told_where_the_answer_would_stand():
    """A number that somebody changed in the cell: Compare says what is wrong with it."""
    view = PredictionView(
        Prediction(predict.after_grant.question(run("credit"), link_credit=-3)), Progress()
    )
    view.field.value = "0"
    view.commit.click()
    view.compare.click()
    assert "link_credit is -3; legal: 0 to 4294967295 messages" in view.line.value
    assert view.prediction.verdict is None
